"""Two queries of one stream, started one after the other."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
clicks = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
even = clicks.where("value % 2 = 0")
odd = clicks.where("value % 2 = 1")

first = (
    even.writeStream.format("delta")
    .option("checkpointLocation", "/lake/_checkpoints/clicks")
    .start("/lake/even")
)
first.awaitTermination()  # error: [MS119]
second = (
    odd.writeStream.format("delta")
    .option("checkpointLocation", "/lake/_checkpoints/clicks")
    .start("/lake/odd")  # error: [MS117]
)
second.awaitTermination()
