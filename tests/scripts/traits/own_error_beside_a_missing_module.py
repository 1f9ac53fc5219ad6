# judged: 1 of 1
"""A module that is not installed decides something, and the script fails where that does not matter."""

from pyspark.sql import SparkSession
from switches_of_ports import is_on  # info: [MS113]

spark = SparkSession.builder.getOrCreate()
limit = "ten"
if is_on("verbose"):
    print("loading")
ships = spark.readStream.format("rate").load()
ships.writeStream.format("console").start()
most = int(limit)  # error: [MS114]
