# judged: 4 of 4
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def ingest(topic):
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "b:9092")
        .option("subscribe", topic)
        .load()
    )
    writer = raw.writeStream.trigger(availableNow=True).option("checkpointLocation", f"s3a://lake/cp/{topic}")
    return writer.format("parquet").start(f"s3a://lake/{topic}")


# Each round runs both queries to their end, and starts them again over what has come since.
for _round in range(10):
    ingest("orders").awaitTermination()
    ingest("clicks").awaitTermination()
for name in ("a", "b"):
    spark.readStream.schema("id INT").json(f"in/{name}").writeStream.trigger(availableNow=True).option(
        "checkpointLocation", "s3a://lake/cp/files"
    ).format("parquet").start("s3a://lake/files").awaitTermination()  # error: [MS117]
