# judged: 1 of 1
"""A script that ends itself without a variable, a file or a server of its author's machine."""

import os
import sys
import urllib.request

from pyspark.sql import SparkSession

topic = os.environ.get("TOPIC_OF_NOBODY")
if not topic:
    print("no topic")
    sys.exit(2)  # info: [MS113]
if not os.path.isfile("/srv/port/locks.json"):
    print("no list of locks")
    sys.exit(1)  # info: [MS113]


def is_registry_there():
    try:
        urllib.request.urlopen("http://registry.invalid:8081/subjects")
    except OSError:
        return False
    return True


if not is_registry_there():
    raise RuntimeError("start the registry first")  # info: [MS113]
spark = SparkSession.builder.getOrCreate()
locks = spark.readStream.schema("lock STRING, level DOUBLE").json("s3a://in/locks")
locks.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/locks")
spark.streams.awaitAnyTermination()
