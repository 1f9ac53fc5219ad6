# judged: 2 of 2
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
known = spark.read.parquet("s3a://lake/orders")  # info: [MS113]
for column in known.columns:
    print(column.lower())
orders = spark.readStream.schema(known.schema).parquet("s3a://lake/orders")
first = (
    orders.writeStream.format("parquet").option("checkpointLocation", "s3a://cp/a").start("s3a://lake/copy")
)
rates = spark.readStream.format("rate").load()
second = (
    rates.writeStream.format("parquet").option("checkpointLocation", "s3a://cp/b").start("s3a://lake/rates")
)
spark.streams.awaitAnyTermination()
