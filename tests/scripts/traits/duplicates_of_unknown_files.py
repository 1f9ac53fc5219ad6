# judged: 1 of 1
"""Columns of files that are not here: duplicates by one of them and by a column of the script, counted per key."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
ships = spark.read.json("/srv/port/ships")  # info: [MS113]
stream = spark.readStream.schema(ships.schema).json("/srv/port/ships")
timed = stream.selectExpr("*", "cast(cast(Seen_at as double) / 1000 as timestamp) as seen_at_time")
single = timed.withWatermark("seen_at_time", "5 seconds").dropDuplicates(["User", "seen_at_time"])
query = single.groupBy("User").count().writeStream.format("memory").queryName("ships").outputMode("complete").start()  # info: [MS218]
query.awaitTermination()
