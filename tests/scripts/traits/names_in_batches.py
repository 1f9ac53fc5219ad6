# judged: 3 of 3
"""Functions of foreachBatch whose names are not defined, and one whose names come later."""

from pyspark.sql import SparkSession


def refresh(batch, number):
    spark.sql("REFRESH TABLE shop.rates")  # error: [MS114]
    batch.write.mode("overwrite").parquet(f"/lake/rates/{number}")


def store(batch):
    batch.write.mode("overwrite").parquet(PLACE)  # error: [MS114]


def later(batch, number):
    batch.write.mode("overwrite").parquet(f"{TARGET}/{number}")


def main():
    spark = SparkSession.builder.getOrCreate()
    rates = spark.readStream.format("rate").load()
    for number, function in enumerate((refresh, lambda batch, number: store(batch), later)):
        rates.writeStream.foreachBatch(function).option("checkpointLocation", f"/lake/_{number}").start()
    spark.streams.awaitAnyTermination()


TARGET = "/lake/later"
main()
