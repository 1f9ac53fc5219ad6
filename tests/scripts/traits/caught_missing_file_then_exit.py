# judged: 1 of 1
"""A file that is not here is looked for in two places, and the script ends without an error code if it has neither."""

import json
import sys

from pyspark.sql import SparkSession


def read():
    try:
        with open("port-of-nobody.json") as file:  # info: [MS113]
            return json.load(file)
    except:
        try:
            with open("/opt/port/port-of-nobody.json") as file:
                return json.load(file)
        except:
            print("no settings")
            sys.exit()


settings = read()
spark = SparkSession.builder.getOrCreate()
kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", settings["brokers"])
ships = kafka.option("subscribe", "ships").load()
ships.writeStream.format("console").start().awaitTermination()
