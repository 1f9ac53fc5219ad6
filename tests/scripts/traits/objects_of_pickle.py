# judged: 1 of 1
"""An object that cannot be read: its file is a pointer of Git LFS here."""

import pickle

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
with open(__file__, "rb") as file:
    limit = pickle.load(file)  # info: [MS113]
meters = spark.readStream.schema("id INT, reading DOUBLE").json("in/meters")
high = meters.where(F.col("reading") > F.lit(9))
high.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/high")
print(limit.mean_)
spark.streams.awaitAnyTermination()
