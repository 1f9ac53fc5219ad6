# judged: 1 of 1
"""Take a folder from the only row of a command that only a catalog answers."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
root = spark.sql("DESCRIBE EXTERNAL LOCATION `harbour`").select("url").collect()[0][0]  # info: [MS113]
ships = spark.readStream.schema("ship STRING").json(root + "/ships")
ships.writeStream.option("checkpointLocation", root + "/cp").start(root + "/lake").awaitTermination()
