"""Page views a minute from Kafka, as most tutorials write them."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count, from_json, window
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

spark = (
    SparkSession.builder.appName("page-views")
    .master("spark://master:7077")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0")
    .config("spark.sql.shuffle.partitions", "8")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("WARN")

schema = StructType(
    [
        StructField("page", StringType()),
        StructField("user_id", StringType()),
        StructField("viewed_at", TimestampType()),
        StructField("_corrupt_record", StringType()),
    ]
)

raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "broker.invalid:9092")
    .option("subscribe", "views")
    .load()
)
views = (
    raw.select(from_json(col("value").cast("string"), schema).alias("view"))
    .select("view.*")
    .where("_corrupt_record IS NULL")
)
per_minute = (
    views.withWatermark("viewed_at", "10 minutes")
    .groupBy(window("viewed_at", "1 minute"), "page")
    .agg(count("*").alias("views"))
)

query = (
    per_minute.writeStream.outputMode("append")
    .format("parquet")
    .option("path", "s3a://lake/views_per_minute")
    .option("checkpointLocation", "s3a://lake/_checkpoints/views_per_minute")
    .trigger(processingTime="1 minute")
    .start()
)
query.awaitTermination()
