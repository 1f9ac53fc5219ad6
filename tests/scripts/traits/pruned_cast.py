# judged: 1 of 1
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
raw = spark.readStream.schema("user STRING, amount STRING, at STRING").csv("s3a://landing/orders")
typed = raw.withColumn("at", F.to_timestamp("at")).withColumn(  # warning: [MS550]
    "amount", F.col("amount").cast("double")
)
typed.select("user", "at").writeStream.format("console").start().awaitTermination()
