# judged: 2 of 2
"""A table that a query writes is counted in SQL, and then read as a stream."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
gates = spark.readStream.format("rate").load()
writer = gates.writeStream.format("delta").option("checkpointLocation", "s3a://port/_gates")
writer.trigger(availableNow=True).toTable("gates").awaitTermination()
spark.sql("SELECT count(*) FROM gates").show()
opened = spark.readStream.table("gates").where("value > 3")
opened.writeStream.option("checkpointLocation", "s3a://port/_opened").start("s3a://port/opened").awaitTermination()
