# judged: 2 of 2
"""Functions of batches that assign a name of the module without declaring it global."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
meters = spark.readStream.schema("id INT, reading DOUBLE").json("in/meters")
waiting = []
total = 0


def flush(folder):
    if not waiting:  # error: [MS114]
        return
    spark.createDataFrame(waiting).write.mode("append").json(folder)
    waiting = []


def collect(batch, batch_id):
    waiting.extend(batch.limit(10).collect())
    if len(waiting) > 100:
        flush("s3a://lake/meters")


def count(batch, batch_id):
    global total
    total += batch.count()


for number, function in enumerate((collect, count)):
    meters.writeStream.foreachBatch(function).option("checkpointLocation", f"s3a://lake/_{number}").start()
spark.streams.awaitAnyTermination()
