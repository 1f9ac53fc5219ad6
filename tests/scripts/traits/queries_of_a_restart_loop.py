# judged: 4 of 4
"""Queries that a loop starts again when one of them has ended, and one that starts too late."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").load()


def store(name):
    return ticks.writeStream.option("checkpointLocation", f"s3a://lake/cp/{name}").start(f"s3a://lake/{name}")


def run():
    store("ticks")
    shown = ticks.writeStream.format("console").start()
    shown.awaitTermination()


first = store("first")
first.awaitTermination()  # error: [MS119]
store("second")
while True:
    try:
        run()
    except KeyboardInterrupt:
        exit("stopped")
