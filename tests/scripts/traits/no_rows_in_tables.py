# judged: 1 of 1
"""Start the query only if tables have rows, by each way to ask for them."""

from pyspark.sql import SparkSession


def has_rows(frame):
    if frame.isEmpty() or frame.first() is None or not frame.take(1) or frame.head() is None:  # info: [MS113]
        return False
    return bool(list(frame.toLocalIterator())) and frame.count() > 0


spark = SparkSession.builder.getOrCreate()
known = spark.read.schema("berth STRING").parquet("s3a://lake/berths")
unknown = spark.table("harbour.ships")  # info: [MS113]
if has_rows(known) and has_rows(unknown):
    rates = spark.readStream.format("rate").load()
    rates.groupBy("value").count().writeStream.format("console").start().awaitTermination()  # error: [MS201]
