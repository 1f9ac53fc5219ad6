"""A server's answer sets a name inside `try`: without the answer, the name is unset, and only in a check."""
# judged: 1 of 1

import json
import urllib.request

from pyspark.sql import SparkSession


def fetch_coins():
    try:
        with urllib.request.urlopen("https://api.example.com/coins") as answer:
            coins = json.load(answer)
    except Exception as error:
        print("no coins", error)
    return coins  # info: [MS113]


spark = SparkSession.builder.getOrCreate()
for coin in fetch_coins():
    print(coin["id"])
stream = spark.readStream.format("rate").load()
query = stream.writeStream.format("console").start()
query.awaitTermination()
