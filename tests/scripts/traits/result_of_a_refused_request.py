# judged: 1 of 1
"""A function returns nothing where a service does not answer as it expects."""

from acmeclient import fetch  # info: [MS113]
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit


def read_cases():
    answer = fetch("https://cases.example")
    if answer.status != 200:
        print("no answer")
    else:
        return {"cases": answer.text}


def count_cases():
    return read_cases()["cases"]  # info: [MS114]


spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load().withColumn("cases", lit(count_cases()))
query = rates.writeStream.format("console").start()
query.awaitTermination()
