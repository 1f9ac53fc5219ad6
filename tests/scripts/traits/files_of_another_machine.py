# judged: 1 of 1
import glob
import os
import sys

from pyspark.sql import SparkSession

home = os.path.join("/opt/other/spark", "python")
sys.path.append(glob.glob(os.path.join(home, "lib", "py4j-*.zip"))[0])  # info: [MS113]
last = max(glob.glob("/opt/other/models/*.bin"))  # info: [MS113]
spark = SparkSession.builder.getOrCreate()
spark.readStream.format("rate").load().writeStream.format("console").start().awaitTermination()
