# Databricks notebook source
# judged: 1 of 1

# COMMAND ----------

# MAGIC %sql
# MAGIC CREATE OR REFRESH STREAMING TABLE port.calls AS SELECT * FROM STREAM read_files("/Volumes/port/calls")

# COMMAND ----------

ticks = spark.readStream.format("rate").load()
ticks.writeStream.option("checkpointLocation", "/Volumes/port/cp/ticks").toTable("port.ticks")
