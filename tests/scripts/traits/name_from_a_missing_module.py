# judged: 1 of 1
"""A loop over the answer of a module that is not installed looks for the file that the script opens."""

import os

import pandas as pd
from cloud_of_ports import Bucket  # info: [MS113]
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
name = ""
for blob in Bucket("harbour").list():
    if "tides" in blob.name:
        name = blob.name
tides = spark.createDataFrame(pd.read_csv(os.path.join(".", name)))  # info: [MS114]
ships = spark.readStream.format("rate").load()
ships.join(tides, "value", "left").writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start(
    "s3a://lake/ships"
).awaitTermination()
