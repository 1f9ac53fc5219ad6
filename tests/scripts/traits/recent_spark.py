# judged: 1 of 1
# From Spark 4 on, ANSI mode is on.
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = (
    SparkSession.builder.appName("orders")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0")
    .getOrCreate()
)
orders = spark.readStream.schema("id STRING, amount STRING, at STRING").json("/landing/orders")
parsed = orders.select("id", F.to_timestamp("at").alias("at"))  # warning: [MS550]
query = (
    parsed.writeStream.format("parquet")
    .option("checkpointLocation", "/lake/checkpoints/orders")
    .start("/lake/orders")
)
query.awaitTermination()
