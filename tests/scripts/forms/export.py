# Databricks notebook source
# MAGIC %md
# MAGIC # Orders

# COMMAND ----------

# MAGIC %run ./helpers/schemas

# COMMAND ----------

dbutils.widgets.text("table", "bronze.orders")
table = dbutils.widgets.get("table")

# COMMAND ----------

# MAGIC %sql
# MAGIC CREATE OR REPLACE TEMPORARY VIEW countries AS
# MAGIC SELECT 'de' AS country

# COMMAND ----------

orders = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema(ORDERS).load("/mnt/orders")
known = orders.join(spark.table("countries"), "country")
known.groupBy("country").count().writeStream.option("checkpointLocation", "/mnt/cp").toTable(table)
