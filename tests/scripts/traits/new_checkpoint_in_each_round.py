# judged: 2 of 2
# A model is read again every two minutes. Each round has checkpoints that are named by its time.
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def start(kind, started):
    ticks = spark.readStream.format("rate").load().selectExpr(f"value % 7 AS {kind}", "timestamp")
    writer = ticks.writeStream.format("console").option("checkpointLocation", f"/data/chk/{kind}/{started}")
    return writer.start()


while True:
    queries = [start("air", time.time()), start("traffic", time.time())]
    spark.streams.awaitAnyTermination(timeout=120)
    for query in queries:
        query.stop()
