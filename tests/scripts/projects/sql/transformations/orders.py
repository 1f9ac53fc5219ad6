"""The one source of the project; SQL reads it by its name."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()


@dp.temporary_view
def raw_orders():
    """Orders as they arrive."""
    return spark.readStream.format("rate").load()
