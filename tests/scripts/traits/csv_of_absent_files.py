# judged: 1 of 1
"""Copy files that are not here from one folder into another, as CSV."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.sql.streaming.schemaInference", "true").getOrCreate()
ships = spark.readStream.format("csv").option("inferSchema", "true").load("landing/ships")  # info: [MS113]  # warning: [MS511]
query = ships.writeStream.format("csv").outputMode("complete").option("path", "lake/ships")  # error: [MS311]
query.option("checkpointLocation", "lake/cp/ships").start().awaitTermination()
