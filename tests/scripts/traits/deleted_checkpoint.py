# judged: 3 of 3
"""Delete a checkpoint at each start, and another one only if an argument asks for it."""

import os
import shutil
import sys

from pyspark.sql import SparkSession

CHECKPOINT = "/lake/_checkpoints/rates"
spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
if os.path.exists(CHECKPOINT):
    shutil.rmtree(CHECKPOINT)
if "--from-the-beginning" in sys.argv:
    shutil.rmtree("/lake/_checkpoints/other")
rates.writeStream.option("checkpointLocation", CHECKPOINT).start("/lake/a")  # warning: [MS403]
rates.writeStream.option("checkpointLocation", "/lake/_checkpoints/other").start("/lake/b")
shown = rates.writeStream.format("console").option("checkpointLocation", CHECKPOINT + "_shown").start()
spark.streams.awaitAnyTermination()
