# judged: 2 of 2
"""A random value in one Delta table, which has each batch once, and in a topic, which may get a batch twice."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").load()
numbered = ticks.select("value", F.expr("uuid()").alias("id"))
numbered.writeStream.format("delta").option("checkpointLocation", "s3a://lake/cp/a").start("s3a://lake/a")
texts = ticks.select(F.concat(F.lit("x"), F.rand().cast("string")).alias("value"))  # warning: [MS321]
kafka = texts.writeStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("topic", "numbers")
kafka.option("checkpointLocation", "s3a://lake/cp/b").start()
spark.streams.awaitAnyTermination()
