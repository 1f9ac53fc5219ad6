"""Orders into a database by foreachBatch."""

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

URL = os.environ.get("DATABASE_URL", "jdbc:postgresql://db.invalid:5432/shop")


def write_orders(batch: DataFrame, batch_id: int) -> None:
    """Append a batch to the table."""
    batch.persist()
    batch.write.jdbc(URL, "orders", mode="append")  # warning: [MS341]
    batch.unpersist()


spark = SparkSession.builder.appName("orders").getOrCreate()
orders = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "broker.invalid:9092")
    .option("subscribe", "orders")
    .option("startingOffsets", "earliest")  # warning: [MS514]
    .load()
    .select(
        from_json(col("value").cast("string"), "id STRING, amount DOUBLE, _corrupt_record STRING").alias("o")
    )
    .select("o.*")
    .where("_corrupt_record IS NULL")
    .drop("_corrupt_record")
)
query = orders.writeStream.foreachBatch(write_orders).start()  # warning: [MS116]
query.awaitTermination()
