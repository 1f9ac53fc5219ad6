# judged: 1 of 1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").load()
ticks.writeStream.format("parquet").option("CheckpointLocation", "/lake/state").start(
    "/lake/ticks"
).awaitTermination()
