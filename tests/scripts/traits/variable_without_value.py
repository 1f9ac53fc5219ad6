# judged: 1 of 1
"""A client that refuses the value of a variable that is not set."""

import os

from pyspark.sql import SparkSession

url = os.getenv("MILLSTREAM_TEST_REGISTRY")


class Client:
    def __init__(self, settings):
        if settings["url"] is None:
            raise ValueError("Missing required configuration property url")  # info: [MS113]


client = Client({"url": url})
spark = SparkSession.builder.getOrCreate()
spark.readStream.format("rate").load().writeStream.format("console").start().awaitTermination()
