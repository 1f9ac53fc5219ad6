# judged: 2 of 2
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("subscribe", "t")
    .load()
)
clicks = raw.select(  # warning: [MS553]
    F.from_json(F.col("value").cast("string"), "page STRING, ts TIMESTAMP").alias("d")
).select("d.*")
counts = clicks.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "5 minutes"), "page").count()
counts.writeStream.option("checkpointLocation", "s3a://cp/1").start("s3a://lake/1")
pages = raw.select(  # warning: [MS553]
    F.from_json(F.col("value").cast("string"), "page STRING, ts TIMESTAMP").alias("d")
).select("d.*")
recent = pages.withWatermark("ts", "10 minutes").groupBy(F.window("ts", "30 seconds", "10 seconds")).count()
recent.writeStream.option("checkpointLocation", "s3a://cp/2").start("s3a://lake/2").awaitTermination()
