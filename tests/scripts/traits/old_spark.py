# judged: 1 of 1
# Under Spark 3, a cast that fails gives NULL, and a text that is no time does too.
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = (
    SparkSession.builder.appName("orders")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1")
    .getOrCreate()
)
orders = spark.readStream.schema("id STRING, amount STRING, at STRING").json("/landing/orders")
parsed = orders.select("id", F.col("amount").cast("double"), F.to_timestamp("at").alias("at"))
query = (
    parsed.writeStream.format("parquet")
    .option("checkpointLocation", "/lake/checkpoints/orders")
    .start("/lake/orders")
)
query.awaitTermination()
