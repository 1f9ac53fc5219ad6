# judged: 4 of 4
"""Several queries that write files into one folder, and a query in memory that has a checkpoint."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()


def split(kind):
    readings = spark.readStream.schema("id INT, value DOUBLE").json(f"s3a://in/{kind}")
    writer = readings.where(F.col("value").isNull()).writeStream.format("parquet")
    return writer.option("checkpointLocation", f"s3a://lake/_{kind}").start("s3a://lake/rejected/")  # error: [MS117]


queries = [split("tides"), split("winds")]
rates = spark.readStream.format("rate").load()
for mode in ("update", "complete"):
    counts = rates.groupBy().count().writeStream.outputMode(mode).format("memory")
    counts.option("checkpointLocation", f"s3a://lake/_{mode}").queryName(mode).start()  # warning: [MS403]
spark.streams.awaitAnyTermination()
