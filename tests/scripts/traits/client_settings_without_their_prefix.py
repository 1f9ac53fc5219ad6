# judged: 1 of 1
"""A parser of settings writes their names in lower case, and one of them lacks the prefix of Kafka's client."""

from configparser import ConfigParser

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
settings = ConfigParser()
settings.read_string("[kafka]\nkafka.bootstrap.servers=broker:9092\nsubscribe=ships\nstartingOffsets=earliest")
reader = spark.readStream.format("kafka").option("group.id", "harbour")  # warning: [MS501]
for key, value in settings["kafka"].items():
    reader = reader.option(key, value)  # warning: [MS514]
ships = reader.load()
ships.writeStream.format("parquet").option("checkpointLocation", "/data/checkpoints/ships").start("/data/ships")
spark.streams.awaitAnyTermination()
