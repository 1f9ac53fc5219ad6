"""A script that imports a package beside it."""

from pyspark.sql import SparkSession
from shop.transforms import cleaned, ranked, with_day

spark = SparkSession.builder.appName("shop").getOrCreate()
orders = spark.readStream.schema("id STRING, amount DOUBLE, ordered_at TIMESTAMP").json(
    "s3a://landing/orders"
)
top = orders.transform(cleaned).transform(with_day, "ordered_at").transform(ranked)
query = (
    top.writeStream.format("delta")
    .option("checkpointLocation", "s3a://lake/_checkpoints/orders")
    .toTable("shop.orders")
)
query.awaitTermination()
