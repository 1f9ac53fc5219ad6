# judged: 1 of 1
"""A package that is not installed here is asked for inside a function, and the script ends without it."""

import sys

from pyspark.sql import SparkSession


class Consumer:
    def __init__(self):
        self.spark = SparkSession.builder.getOrCreate()

    def open(self):
        try:
            import driver_of_a_database  # info: [MS113]

            return driver_of_a_database.connect()
        except Exception as error:
            print(f"no connection: {error}")
            raise

    def run(self):
        self.open()
        rows = self.spark.readStream.format("rate").load()
        rows.orderBy("value").writeStream.format("console").start().awaitTermination()  # error: [MS311]


def main():
    try:
        Consumer().run()
    except Exception as error:
        print(f"the consumer failed: {error}")
        sys.exit(1)


main()
