# judged: 1 of 1
from pyspark.sql import SparkSession
from traitlib.sources import read_rates

spark = SparkSession.builder.getOrCreate()
read_rates(spark).writeStream.format("console").start().awaitTermination()
