# judged: 1 of 1
# Settings are in a file of the author's machine.
import json

from pyspark.sql import SparkSession

with open("/opt/author/jobs/settings.json") as file:  # info: [MS113]
    settings = json.load(file)

spark = SparkSession.builder.appName(settings["name"]).getOrCreate()
rates = spark.readStream.format("rate").load()
rates.writeStream.format("console").outputMode("append").start(
    checkpointLocation=settings["checkpoint"]
).awaitTermination()
