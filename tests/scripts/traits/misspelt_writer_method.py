# judged: 1 of 1
"""The stream of a table that nobody knows here, whose second query calls a method that no writer has."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
barges = spark.readStream.table("port.barges")  # info: [MS113]
moored = barges.writeStream.outputMode("append").option("checkpointLocation", "s3a://cp/moored").start("s3a://moored")
left = barges.writeStream.ouputMode("append").format("parquet").start("s3a://left")  # error: [MS114]
