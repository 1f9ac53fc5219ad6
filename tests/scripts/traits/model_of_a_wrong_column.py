# judged: no
"""A model is trained with a column that the table does not have, whatever its rows are."""

from pyspark.ml.regression import LinearRegression
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
past = spark.read.schema("hour INT, fare DOUBLE").csv("past-fares.csv")
model = LinearRegression(featuresCol="hours", labelCol="fare").fit(past)  # error: [MS114]
hours = spark.readStream.format("rate").load().selectExpr("CAST(value % 24 AS INT) AS hour")
model.transform(hours).writeStream.format("console").start().awaitTermination()
