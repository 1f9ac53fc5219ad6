# judged: 1 of 1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
rates.writeStream.format("console").start()
rates.select("amount")  # error: [MS114]
