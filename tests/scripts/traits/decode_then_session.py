# judged: 3 of 3
"""Spark adds a filter for a session window, which drops rows without a time and is no check of the message."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("subscribe", "t").load()
text = F.col("value").cast("string")
clicks = kafka.select(F.from_json(text, "page STRING, ts TIMESTAMP").alias("d"))  # warning: [MS553]
visits = clicks.select("d.*").withWatermark("ts", "10 minutes").groupBy("page", F.session_window("ts", "5 minutes"))
visits.count().writeStream.option("checkpointLocation", "s3a://cp/1").start("s3a://lake/1")
pages = kafka.select(F.from_json(text, "page STRING, pause STRING, ts TIMESTAMP").alias("d"))  # warning: [MS553]
own_pause = pages.select("d.*").withWatermark("ts", "10 minutes").groupBy("page", F.session_window("ts", F.col("pause")))
own_pause.count().writeStream.option("checkpointLocation", "s3a://cp/2").start("s3a://lake/2")
calls = kafka.select(F.from_json(text, "page STRING, ts TIMESTAMP").alias("d")).select("d.*")
named = calls.where("page IS NOT NULL").withWatermark("ts", "10 minutes")
named.groupBy("page", F.session_window("ts", "5 minutes")).count().writeStream.option("checkpointLocation", "s3a://cp/3").start("s3a://lake/3")
spark.streams.awaitAnyTermination()
