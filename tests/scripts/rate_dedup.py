"""Deduplication within the watermark, a listener, and a loop that looks at progress."""

import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener


class Progress(StreamingQueryListener):
    def onQueryStarted(self, event):
        print("started", event.id)

    def onQueryProgress(self, event):
        print(event.progress.numInputRows)

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        print("ended", event.id)


spark = SparkSession.builder.master("local[*]").getOrCreate()
spark.streams.addListener(Progress())
events = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
once = events.withWatermark("timestamp", "10 minutes").dropDuplicatesWithinWatermark(["value"])
query = (
    once.writeStream.format("parquet")
    .option("checkpointLocation", "/lake/_checkpoints/once")
    .trigger(processingTime="5 seconds")
    .start("/lake/once")
)
while query.isActive:
    progress = query.lastProgress
    if progress:
        print(progress["batchId"], progress["numInputRows"])
    time.sleep(10)
