# judged: 1 of 1
"""Servers from a variable that is empty if it is not set."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
servers = os.environ.get("SERVERS_OF_NOBODY", "")
locks = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)  # info: [MS501]
query = locks.option("subscribe", "locks").load().writeStream.format("console").start()
query.awaitTermination()
