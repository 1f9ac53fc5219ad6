# judged: 1 of 1
"""A script that starts its query when a client of another system has a session, and a topic is there."""

import time

from brokerlib import Admin  # info: [MS113]
from pyspark.sql import SparkSession
from storelib import Cluster  # info: [MS113]


def wait_for(topic):
    while True:
        try:
            if topic in Admin("b:9092").list_topics():
                return
        except Exception as error:
            print(error)
        time.sleep(5)


wait_for("locks")
spark = SparkSession.builder.getOrCreate()
session = Cluster(["store"]).connect()
if session:
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("subscribe", "locks")
    kafka.load().writeStream.format("console").start().awaitTermination()
