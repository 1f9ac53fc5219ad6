# judged: 1 of 1
"""A file that is not here is opened inside `try`, and the script prints the error and ends."""

import json

from pyspark.sql import SparkSession


def main():
    try:
        with open("/opt/port/keys.json") as file:  # info: [MS113]
            keys = json.load(file)
        spark = SparkSession.builder.config("spark.hadoop.fs.s3a.access.key", keys["access"]).getOrCreate()
        spark.readStream.format("rate").load().writeStream.format("console").start().awaitTermination()
    except Exception as error:
        print("failed:", error)


main()
