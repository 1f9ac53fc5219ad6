# judged: 1 of 1
"""An object that writes each row, in a query without a checkpoint location."""

from pyspark.sql import SparkSession


class Store:
    def open(self, partition_id, epoch_id):
        return True

    def process(self, row):
        print(row)

    def close(self, error):
        pass


spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").load()
ticks.writeStream.foreach(Store()).start().awaitTermination()  # warning: [MS116]
