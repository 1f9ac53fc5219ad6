"""The Yahoo streaming benchmark in PySpark as tutorials write it; no setting is changed from Spark's default.

The whole event is parsed, the ads come from a CSV file, and `foreachBatch` collects the counts and writes them row by
row. Ends once it has caught up. Each batch is one transaction; a batch that is repeated writes the same counts again.
"""

from __future__ import annotations

import argparse

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, from_json, window
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

SCHEMA = StructType(
    [
        StructField("user_id", StringType()),
        StructField("page_id", StringType()),
        StructField("ad_id", StringType()),
        StructField("ad_type", StringType()),
        StructField("event_type", StringType()),
        StructField("event_time", TimestampType()),
        StructField("ip_address", StringType()),
    ]
)
TABLE = """CREATE TABLE IF NOT EXISTS counts (campaign_id text, window_start timestamptz, views bigint,
PRIMARY KEY (campaign_id, window_start))"""
UPSERT = """INSERT INTO counts VALUES (%s, %s, %s)
ON CONFLICT (campaign_id, window_start) DO UPDATE SET views = excluded.views"""


def main() -> None:
    """Read the words, run the query to the end of the topic."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("kafka", "topic", "postgres", "ads", "checkpoint", "jars"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument(
        "--batch", type=int, default=0, help="Most records of a batch; 0 for Spark's default, all."
    )
    parser.add_argument("--master", default="local[*]")
    asked = parser.parse_args()

    spark = (
        SparkSession.builder.appName("ysb")
        .master(asked.master)
        .config("spark.jars", asked.jars)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")

    with psycopg.connect(asked.postgres) as connection:
        connection.execute(TABLE)

    def write(batch: DataFrame, batch_id: int) -> None:  # noqa: ARG001 - foreachBatch passes both
        with psycopg.connect(asked.postgres) as connection:
            for row in batch.collect():
                connection.execute(
                    UPSERT, (row["campaign_id"], row["window"]["start"].astimezone(), row["views"])
                )

    ads = spark.read.option("header", "true").csv(asked.ads)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", asked.kafka)
        .option("subscribe", asked.topic)
        .option("startingOffsets", "earliest")
    )
    if asked.batch:
        records = records.option("maxOffsetsPerTrigger", asked.batch)
    counts = (
        records.load()
        .select(from_json(col("value").cast("string"), SCHEMA).alias("event"))
        .select("event.*")
        .withWatermark("event_time", "10 seconds")
        .filter(col("event_type") == "view")
        .join(ads, "ad_id")
        .groupBy("campaign_id", window("event_time", "10 seconds"))
        .agg(count("*").alias("views"))
    )
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", asked.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
