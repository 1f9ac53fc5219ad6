# judged: 0 of 1
"""A model in a folder that only the machine of the job has."""

from pyspark.ml import PipelineModel
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
model = PipelineModel.load("models/fares")  # info: [MS113]
rows = spark.readStream.format("rate").load()
model.transform(rows).writeStream.format("console").start().awaitTermination()
