"""Streaming tables of a shop."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, window

spark = SparkSession.active()


@dp.table
def orders():
    return spark.readStream.format("rate").load().withColumnRenamed("value", "order_id")


@dp.table(name="newest")
def newest_orders():
    return (
        spark.readStream.table("orders").orderBy(col("timestamp").desc())  # error: [MS311]
    )


@dp.materialized_view
def per_minute():
    return spark.read.table("orders").groupBy(window("timestamp", "1 minute")).count()


dp.create_streaming_table("archive")


@dp.append_flow(target="archive")
def archived():
    return spark.readStream.table("orders").where("order_id % 2 = 0")


dp.create_sink("topic", "kafka", {"kafka.bootstrap.servers": "broker.invalid:9092", "topic": "orders"})


@dp.append_flow(target="topic")
def published():
    return spark.readStream.table("orders").selectExpr("CAST(order_id AS STRING) AS value")
