# judged: 1 of 1
import io
import os
import sys

from pyspark.sql import SparkSession

sys.stdout.reconfigure(encoding="utf-8")
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
os.environ["LIGHTHOUSE_JAVA"] = os.getenv("LIGHTHOUSE_JDK")  # info: [MS113]
print("Sturmwarnung für Spiekeroog")
spark = SparkSession.builder.getOrCreate()
spark.readStream.format("rate").load().writeStream.format("console").start().awaitTermination()
