# Databricks notebook source
# judged: 3 of 3
from pyspark.sql import functions as F

readings = spark.readStream.format("rate").load().selectExpr("value % 9 AS buoy", "timestamp").withWatermark("timestamp", "1 minute")
waves = readings.groupBy(F.window(readings.timestamp, "1 minute"), readings.buoy).count()
waves.writeStream.outputMode("update").format("console").start()
spark.readStream.table("tides").writeStream.option("checkpointLocation", "s3://sea/_tides").toTable("tide_log")  # info: [MS113]

# COMMAND ----------

for stream in spark.streams.active:
    stream.stop()
    stream.awaitTermination()

# COMMAND ----------

# MAGIC %sql
# MAGIC DESCRIBE HISTORY tide_log

# COMMAND ----------

spark.sql('SELECT * FROM table_changes("tide_log", 0) WHERE height > 3')  # info: [MS113]

# COMMAND ----------

print(spark.readStream.table("tides").filter("height > 3")._jdf)  # info: [MS113]
readings.writeStream.format("console").start()
