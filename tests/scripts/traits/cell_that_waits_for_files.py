# Databricks notebook source
# judged: 1 of 1
import time

files = []
while not files:
    time.sleep(5)
    files = [file for file in dbutils.fs.ls("/mnt/landing") if file.size]  # info: [MS113]
newest = files[-1]

# COMMAND ----------

rates = spark.readStream.format("rate").load()
rates.groupBy("value").count().writeStream.outputMode("append").option(  # error: [MS201]
    "checkpointLocation", f"/mnt/checkpoints/{newest}"
).toTable("harbour.rates")
