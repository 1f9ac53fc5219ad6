# judged: 1 of 1
"""A model in a folder that only the machine of the job has, and a script that ends without it."""

import sys

from pyspark.ml import PipelineModel
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
try:
    model = PipelineModel.load("models/fares")  # info: [MS113]
except Exception as error:
    print(f"no model: {error}")
    sys.exit(1)
rows = spark.readStream.format("rate").load()
model.transform(rows).writeStream.format("console").start().awaitTermination()
