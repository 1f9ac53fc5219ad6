# judged: 1 of 1
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
query = spark.readStream.format("rate").load().writeStream.format("console").start()
time.sleep(30)
query.stop()
