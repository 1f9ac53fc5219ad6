# judged: 2 of 2
"""Streams over tables whose names have letters that are not in ASCII, of one length."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE werk.`zähler` (id INT, wert DOUBLE) USING delta")
spark.sql("CREATE TABLE `größen` (id INT, einheit STRING) USING delta")
values = spark.sql("SELECT id, wert / 2 AS wert FROM STREAM werk.`zähler`")
values.writeStream.format("delta").option("checkpointLocation", "s3a://lake/cp/a").start("s3a://lake/a")
units = spark.sql("SELECT z.id, g.einheit FROM STREAM werk.`zähler` AS z JOIN `größen` AS g ON z.id = g.id")
units.writeStream.format("delta").option("checkpointLocation", "s3a://lake/cp/b").start("s3a://lake/b")
spark.streams.awaitAnyTermination()
