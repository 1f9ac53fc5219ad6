# judged: 1 of 1
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote("sc://spark.internal:15002").appName("ticks").getOrCreate()
ticks = spark.readStream.format("rate").load()
ticks.writeStream.format("parquet").option("checkpointLocation", "/lake/state").start("/lake/ticks")
