# judged: 1 of 1
"""A class that PySpark does not have."""

from pyspark.ml.feature import SelectKBest  # info: [MS113]
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
best = SelectKBest(3)
spark.readStream.format("rate").load().writeStream.format("console").start().awaitTermination()
