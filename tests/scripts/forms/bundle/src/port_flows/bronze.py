from databricks.sdk.runtime import spark
from port_tools import columns
from pyspark import pipelines as dp

from port_flows import settings


@dp.table(name=f"{settings.silver}.arrivals")
def arrivals():
    files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return files.schema(columns.ARRIVALS).load(settings.landing)
