# judged: 1 of 1
"""A script that only starts its query if it can connect to the server whose lines it reads."""

import socket
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def is_there(host, port):
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def is_open(host, port):
    probe = socket.socket()
    return probe.connect_ex((host, port)) == 0


if not (is_there("127.0.0.1", 9999) and is_open("127.0.0.1", 9999)):
    sys.exit(1)
lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", 9999).load()
lines.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/lines")
spark.streams.awaitAnyTermination()
