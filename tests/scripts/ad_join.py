"""Clicks joined to impressions, the classic of two streams."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

spark = SparkSession.builder.appName("ads").getOrCreate()


def read(topic):
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "broker.invalid:9092")
        .option("subscribe", topic)
        .load()
    )


impressions = read("impressions").selectExpr("CAST(key AS STRING) AS impression_ad", "timestamp AS shown_at")
clicks = read("clicks").selectExpr("CAST(key AS STRING) AS click_ad", "timestamp AS clicked_at")

joined = impressions.withWatermark("shown_at", "2 hours").join(  # error: [MS209]
    clicks,
    expr("click_ad = impression_ad AND clicked_at >= shown_at AND clicked_at <= shown_at + interval 1 hour"),
    "fullOuter",
)
query = (
    joined.selectExpr("to_json(struct(*)) AS value")
    .writeStream.format("kafka")
    .option("kafka.bootstrap.servers", "broker.invalid:9092")
    .option("topic", "joined")
    .option("checkpointLocation", "/checkpoints/ads")
    .start()
)
spark.streams.awaitAnyTermination()
