# judged: 2 of 2
"""Batch ids that are part of a path, of a text or of another write: a repeated batch is appended twice."""

import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").load()


def store(batch, batch_id):
    batch = batch.cache()
    batch.write.mode("overwrite").json(f"s3a://lake/ticks/{batch_id}")
    batch.write.format("kafka").option("topic", "ticks").save()  # warning: [MS341]
    batch.unpersist()


def store_below(batch, batch_id):
    text = f"batch {batch_id}"
    folder = os.path.join("s3a://lake/seconds", str(batch_id))
    numbered = batch.withColumn("batch", F.lit(batch_id)).cache()
    numbered.write.mode("append").json("s3a://lake/numbered")
    numbered.drop("batch").write.mode("append").parquet("s3a://lake/minutes")
    batch.write.mode("append").parquet(folder)  # warning: [MS341]
    print(text)


for number, function in enumerate((store, store_below)):
    ticks.writeStream.foreachBatch(function).option("checkpointLocation", f"s3a://lake/_{number}").start()
spark.streams.awaitAnyTermination()
