# judged: 1 of 1
"""A mistake that the script catches, and after which it exits with an error."""

import sys

from pyspark.sql import SparkSession


def report(query):
    if query.exception:
        raise query.exception()


code = 0
spark = SparkSession.builder.getOrCreate()
query = spark.readStream.format("rate").load().writeStream.format("console").start()
try:
    query.awaitTermination()
    report(query)
except Exception as error:
    print("failed:", error)
    code = 3
sys.exit(code)  # error: [MS114]
