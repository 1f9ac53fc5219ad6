# judged: 1 of 1
# Under Spark 3, a cast that fails gives NULL. A message that is no JSON does so under every version.
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = (
    SparkSession.builder.appName("orders")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1")
    .getOrCreate()
)
raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("subscribe", "o").load()
message = F.from_json(F.col("value").cast("string"), "id STRING, amount STRING, at STRING")
orders = raw.select(message.alias("o")).select("o.*")  # warning: [MS553]
parsed = orders.select("id", F.col("amount").cast("double"), F.to_timestamp("at").alias("at"))
query = (
    parsed.writeStream.format("parquet")
    .option("checkpointLocation", "/lake/checkpoints/orders")
    .start("/lake/orders")
)
query.awaitTermination()
