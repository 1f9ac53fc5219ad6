# judged: 0 of 1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
last = (
    spark.read.schema("n INT").parquet("s3a://state/last").agg({"n": "max"}).where("false").first()[0]  # info: [MS113]
)
rates = spark.readStream.format("rate").load()
rates.where(f"value > {last}").writeStream.format("console").start().awaitTermination()
