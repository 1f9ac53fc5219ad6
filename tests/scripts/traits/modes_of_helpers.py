# judged: 4 of 4
"""A helper has its mode and its format from the call, or from its own defaults."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
tides = spark.readStream.schema("gauge STRING, level DOUBLE").json("s3a://port/tides")


def save(rows, table, mode="append", *, kind="jdbc"):
    rows.write.format(kind).option("dbtable", table).mode(mode).save()  # warning: [MS341]


def overwrite(rows, _number):
    save(rows.groupBy("gauge").count(), "levels", "overwrite")


def append(rows, _number):
    save(rows.groupBy("gauge").count(), "levels")


def show(rows, _number):
    save(rows, "levels", kind="noop")


def create(rows, path, mode="errorifexists"):
    rows.write.mode(mode).parquet(path)  # error: [MS346]


def create_each_time(rows, _number):
    create(rows, "s3a://port/levels")


for number, write in enumerate([overwrite, append, show, create_each_time]):
    tides.writeStream.foreachBatch(write).option("checkpointLocation", f"s3a://cp/{number}").start()
spark.streams.awaitAnyTermination()
