# judged: 2 of 2
"""Duplicates among the rows that a filter by the clock lets through, and duplicates by the clock itself."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, current_timestamp, expr

spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
ships = spark.readStream.schema("imo STRING, seen_at TIMESTAMP").json("s3a://in/ships")
recent = ships.filter(col("seen_at") >= expr("current_timestamp() - interval 10 minutes"))
seen = recent.withWatermark("seen_at", "10 minutes").dropDuplicatesWithinWatermark(["imo"])
seen.writeStream.option("checkpointLocation", "s3a://cp/seen").start("s3a://lake/seen")
stamped = ships.withColumn("at", current_timestamp())  # warning: [MS212]
stamped = stamped.withWatermark("seen_at", "10 minutes").dropDuplicatesWithinWatermark(["imo", "at"])
stamped.writeStream.option("checkpointLocation", "s3a://cp/stamped").start("s3a://lake/stamped")
spark.streams.awaitAnyTermination()
