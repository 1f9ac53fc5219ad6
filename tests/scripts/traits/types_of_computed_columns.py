# judged: 1 of 1
"""Columns of an unknown table that get another type, each if the table has it."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, size, split

spark = SparkSession.builder.getOrCreate()
ships = spark.readStream.table("port.raw.ships")  # info: [MS113]
for name in ("cargo", "crew"):
    if name in ships.columns:
        ships = ships.withColumn(name, split(col(name), ","))
if "flag" in ships.columns:
    ships = ships.filter(col("flag").isNotNull())
counted = ships.withColumn("parcels", size("cargo")).withColumn("hands", size("crew"))
counted.writeStream.option("checkpointLocation", "s3a://cp/ships").toTable("port.silver.ships").awaitTermination()
