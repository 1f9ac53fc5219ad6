# judged: 1 of 1
"""Environment variables without a default, one of them read inside the call of a source."""

import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.master(os.environ["MASTER_OF_NOBODY"]).getOrCreate()  # info: [MS113]
locks = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", os.environ["SERVERS_OF_NOBODY"])  # info: [MS113]
    .option("subscribe", "locks")
    .load()
)
query = locks.groupBy("key").count().writeStream.format("console").start()  # error: [MS201]
query.awaitTermination()
