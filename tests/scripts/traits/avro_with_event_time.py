# judged: 2 of 2
"""Avro messages whose schema only a registry knows, with a time that a watermark and a window need."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from registry_client import latest_schema  # info: [MS113]

spark = SparkSession.builder.getOrCreate()
servers = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
topic = servers.option("subscribe", "moorings").load()
moorings = topic.select(from_avro("value", latest_schema("moorings")).alias("m")).select("m.*")  # warning: [MS553]
late = moorings.withWatermark("ended", "1 minute").withColumn("seconds", (F.col("ended") - F.col("began")).cast("long"))
by_quay = late.groupBy(F.window(late.ended, "1 hour"), late.quay).agg(F.avg("seconds"), F.count("*").alias("n"))
by_quay.writeStream.option("checkpointLocation", "s3a://port/_quays").start("s3a://port/quays")
timed = moorings.withWatermark("ended", "1 minute")
began = timed.groupBy(F.window(timed.began, "1 hour"), timed.quay).count()  # error: [MS203]
began.writeStream.outputMode("update").format("console").start()
spark.streams.awaitAnyTermination()
