# judged: 1 of 1
"""A session that a module makes which is not installed: the script waits for its queries."""

from company_spark import open_session  # info: [MS113]

spark = open_session("tides")
tides = spark.readStream.schema("station STRING, height DOUBLE").json("s3a://in/tides")
tides.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/tides")
spark.streams.awaitAnyTermination()
