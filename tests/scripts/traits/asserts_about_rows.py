# judged: 2 of 2
"""Assert what the tables contain between two queries."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE harbour.berths (ship STRING)")
ships = spark.readStream.schema("ship STRING").json("/landing/ships")
arrivals = ships.writeStream.option("checkpointLocation", "/lake/cp/a").trigger(availableNow=True).toTable("harbour.berths")
arrivals.awaitTermination()
assert spark.table("harbour.berths").count() == 12, "some ships are missing"  # info: [MS113]
spark.readStream.table("harbour.berths").writeStream.option("checkpointLocation", "/lake/cp/b").start("/lake/b").awaitTermination()
