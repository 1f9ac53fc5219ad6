# judged: 1 of 1
"""A file of settings that is in the folder of the script, from where the script is run."""

import json

from pyspark.sql import SparkSession

with open("settings/tides.json") as file:
    settings = json.load(file)
spark = SparkSession.builder.getOrCreate()
tides = spark.readStream.schema(settings["columns"]).json(settings["folder"])
counts = tides.groupBy("station").count()  # error: [MS201]
query = counts.writeStream.outputMode("append").format("parquet")
query.option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/tides").awaitTermination()
