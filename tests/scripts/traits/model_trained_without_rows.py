# judged: 1 of 1
"""A model learns from a file that is not here, and predicts the values of a stream."""

from pyspark.ml.feature import VectorAssembler
from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
past = spark.read.option("header", True).schema("hour INT, fare DOUBLE").csv("past-fares.csv").na.drop()
assembler = VectorAssembler(inputCols=["hour"], outputCol="features")
model = LinearRegression(labelCol="fare").fit(assembler.transform(past))  # info: [MS113]
model.save("models/fares")
hours = spark.readStream.format("rate").load().selectExpr("CAST(value % 24 AS INT) AS hour")
model.transform(assembler.transform(hours)).writeStream.format("console").start().awaitTermination()
