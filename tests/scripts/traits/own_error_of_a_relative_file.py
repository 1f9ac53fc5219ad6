# judged: 1 of 1
"""A script that says itself that a file beside it is missing, and demands something of its text."""

import json
import os

from pyspark.sql import SparkSession


def load_settings(path):
    if not os.path.isfile(path):
        raise FileNotFoundError(f"No settings found at {path}. Settings are required.")  # info: [MS113]
    with open(path) as file:  # info: [MS113]
        settings = json.load(file)
    if not settings.get("topic"):
        raise KeyError("no topic")
    if isinstance(settings["topic"], list) or not isinstance(settings["topic"], str):
        raise TypeError("the topic must be a string")
    return settings


settings = load_settings("settings-of-nobody.json")
spark = SparkSession.builder.getOrCreate()
locks = spark.readStream.format("kafka").option("kafka.bootstrap.servers", settings["brokers"])
locks.option("subscribe", settings["topic"]).load().writeStream.format("console").start().awaitTermination()
