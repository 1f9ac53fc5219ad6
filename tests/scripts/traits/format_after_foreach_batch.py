# judged: 2 of 2
"""A function for batches that Spark does not call, because a format follows it, and a sink with a missing column."""

from pyspark.sql import SparkSession


def parse(batch, _batch_id):
    batch.select(from_xml("value"))


def keep(batch, _batch_id):
    batch.write.mode("append").save("s3a://lake/kept")  # warning: [MS341]


spark = SparkSession.builder.getOrCreate()
lines = spark.readStream.format("socket").option("host", "gate").option("port", 9).load()
raw = lines.writeStream.foreachBatch(parse).format("parquet").option("checkpointLocation", "s3a://lake/cp/raw")
raw.partitionBy("day").start("s3a://lake/raw")  # error: [MS305]
batches = lines.writeStream.format("parquet").foreachBatch(keep).option("checkpointLocation", "s3a://lake/cp/kept")
batches.start()
spark.streams.awaitAnyTermination()
