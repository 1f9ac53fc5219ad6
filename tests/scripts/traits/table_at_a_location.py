# judged: 1 of 1
"""A table without columns in its statement has those of the files at its location."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE IF NOT EXISTS tides USING parquet LOCATION 's3a://lake/tides'")
spark.sql("SELECT station, height FROM tides WHERE height > 3 ORDER BY height").show()  # info: [MS113]
heights = spark.readStream.schema("station STRING, height DOUBLE").json("in/tides")
heights.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/tides")
spark.streams.awaitAnyTermination()
