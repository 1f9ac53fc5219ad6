# judged: 2 of 2
"""Tables with the partition and offset of each message: one with the event's own time, one with the broker's."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
place = "partition INT, offset BIGINT"
calls = spark.readStream.schema(f"caller STRING, timestamp BIGINT, {place}").parquet("s3a://lake/calls")
timed = calls.withColumn("timestamp", F.timestamp_millis("timestamp")).withWatermark("timestamp", "1 minute")
once = timed.dropDuplicates(["caller", "timestamp"])
once.writeStream.option("checkpointLocation", "s3a://lake/cp/calls").start("s3a://lake/calls_once")
copies = spark.readStream.schema(f"caller STRING, timestamp TIMESTAMP, {place}").parquet("s3a://lake/messages")
again = copies.withWatermark("timestamp", "1 minute").dropDuplicates(["caller", "timestamp"])  # warning: [MS212]
again.writeStream.option("checkpointLocation", "s3a://lake/cp/messages").start("s3a://lake/messages_once")
spark.streams.awaitAnyTermination()
