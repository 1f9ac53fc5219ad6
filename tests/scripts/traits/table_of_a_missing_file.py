# judged: 2 of 2
"""Tables made of files for pandas that are not here, joined with streams."""

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
routes = spark.createDataFrame(pd.read_csv("./routes.csv")).select("route", "length")  # info: [MS113]
boats = pd.read_excel("./boats.xlsx")  # info: [MS113]
names = spark.createDataFrame(boats)
trips = spark.readStream.format("rate").load().withColumnRenamed("value", "route")
totals = trips.groupBy("route").agg(F.count("*").alias("trips"))  # warning: [MS202]
totals.join(routes, "route", "left").writeStream.outputMode("update").format("console").start()
trips.join(names, "route").select("boat").writeStream.format("console").start()
spark.streams.awaitAnyTermination()
