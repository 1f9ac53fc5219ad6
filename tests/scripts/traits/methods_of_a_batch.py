# judged: 3 of 3
"""Functions of foreachBatch that call a method which no DataFrame has, and one that gives the name to another value."""

from pyspark.sql import SparkSession


def show_mean(batch, number):
    batch.withColumn("n", batch.value + number).mean("value")  # a chain is not followed
    print(batch.avg("value"))  # error: [MS114]


class Job:
    def store(self, batch, number):
        batch.dropDuplicate(["value"]).write.mode("overwrite").parquet(f"/lake/{number}")  # error: [MS114]


def as_pandas(batch, number):
    batch = batch.toPandas()
    print(number, batch.nlargest(3, "value"))


spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
for number, function in enumerate((show_mean, Job().store, as_pandas)):
    rates.writeStream.foreachBatch(function).option("checkpointLocation", f"/lake/_{number}").start()
spark.streams.awaitAnyTermination()
