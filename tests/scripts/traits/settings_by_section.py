# judged: 2 of 2
"""The settings are in a file that only its author has, and `configparser` passes over a missing file."""

import configparser

from pyspark.sql import SparkSession

settings = configparser.ConfigParser()
settings.read("config/of_the_author.ini")
database = settings["database"]["name"]  # info: [MS113]

spark = SparkSession.builder.appName("harbour").getOrCreate()


def read_topic():
    server = f"{settings.get('kafka', 'host')}:9092"  # info: [MS113]
    return spark.readStream.format("kafka").option("kafka.bootstrap.servers", server).option("subscribe", "ships").load()


def write(batch, number):
    batch.write.mode("overwrite").parquet(f"/lake/{database}/{number}")


ships = read_topic()
ships.writeStream.foreachBatch(write).option("checkpointLocation", "/lake/cp/ships").start()
ships.orderBy("offset").writeStream.format("console").start()  # error: [MS311]
spark.streams.awaitAnyTermination()
