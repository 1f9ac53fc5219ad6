# judged: 1 of 1
"""A script that says itself that a file of its machine is missing, and one whose error names no file."""

import json
import os

from pyspark.sql import SparkSession


def load_settings(path):
    if not os.path.exists(path):
        raise FileNotFoundError(f"no settings: {path}.")  # info: [MS113]
    with open(path) as file:  # info: [MS113]
        return json.load(file)


spark = SparkSession.builder.getOrCreate()
settings = load_settings("/srv/port/settings.json")
locks = spark.readStream.format("kafka").option("kafka.bootstrap.servers", settings["brokers"])
query = locks.option("subscribe", "locks").load().writeStream.format("console").start()
query.awaitTermination()
raise FileNotFoundError("no lock is left")  # error: [MS114]
