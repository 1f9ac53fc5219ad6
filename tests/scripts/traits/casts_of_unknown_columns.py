# judged: 3 of 3
"""Columns of tables that only a catalog knows are cast to types that no text has."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
ships = spark.readStream.table("raw.ships")  # info: [MS113]
flags = ships.withColumn("flags", F.col("flags").cast("map<string,boolean>"))
flags.select(F.map_keys("flags").alias("flag")).writeStream.format("console").start()
crews = ships.select(F.col("crew").cast("array<struct<name:string,age:int>>").alias("crew"))
crews.select(F.explode("crew.age").alias("age")).writeStream.format("console").start()
berths = ships.select(F.expr("CAST(berth AS struct<quay:string,number:int>)").alias("berth"))
berths.select("berth.quay").writeStream.format("console").start()
spark.streams.awaitAnyTermination()
