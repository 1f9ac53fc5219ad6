# Databricks notebook source
raw = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load("/mnt/landing/orders")

# COMMAND ----------

raw.writeStream.option("checkpointLocation", "/mnt/state/orders").table("bronze.orders")

# COMMAND ----------

raw.writeStream.partitions("day").toTable("bronze.days")
