from databricks.sdk.runtime import spark
from port_tools import columns
from pyspark import pipelines as dp

from port_flows import settings


@dp.table
def per_gate():
    arrivals = spark.readStream.table(f"{settings.silver}.arrivals")
    return arrivals.groupBy(columns.GATE).count()


@dp.table
def gates():
    return spark.read.table(f"{settings.silver}.per_gate").select("gate")
