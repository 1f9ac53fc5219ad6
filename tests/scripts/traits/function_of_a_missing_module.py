# judged: 1 of 1
"""A function for rows that uses a module which is not installed here."""

import pricestore  # info: [MS113]
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf


@udf(returnType="double")
def price(value):
    return float(pricestore.open("prices.db").lookup(value))


spark = SparkSession.builder.getOrCreate()
sales = spark.readStream.format("rate").load()
sales.withColumn("price", price("value")).writeStream.format("console").start().awaitTermination()
