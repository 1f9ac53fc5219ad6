# judged: 1 of 1
"""A script that looks a column up in the schema of messages whose Avro schema nobody knows here."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col
from pyspark.sql.types import TimestampType

spark = SparkSession.builder.getOrCreate()
schema = Path("/opt/port/lock.avsc").read_text(encoding="utf-8")  # info: [MS113]
raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("subscribe", "o").load()
locks = raw.select(from_avro("value", schema).alias("lock")).select("lock.*")  # warning: [MS553]
if not isinstance(locks.schema["closed_at"].dataType, TimestampType):
    locks = locks.withColumn("closed_at", (col("closed_at") / 1000).cast("timestamp"))
locks.writeStream.format("parquet").option("checkpointLocation", "s3a://cp/a").start("s3a://lake/locks").awaitTermination()
