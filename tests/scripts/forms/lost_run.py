# Databricks notebook source
# MAGIC %run ../shared/settings

# COMMAND ----------

raw = spark.readStream.schema(ORDERS_SCHEMA).json(LANDING)
raw.writeStream.option("checkpointLocation", CHECKPOINTS + "/a").toTable("raw")
rates = spark.readStream.format("rate").load()
rates.orderBy("value").writeStream.option("checkpointLocation", CHECKPOINTS + "/b").toTable("rates")
