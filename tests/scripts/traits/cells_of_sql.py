# Databricks notebook source
# judged: 2 of 2
# MAGIC %sql
# MAGIC -- The tables of this notebook.
# MAGIC CREATE TABLE IF NOT EXISTS main.shop.orders (id INT, note STRING COMMENT 'a; b', ts TIMESTAMP);
# MAGIC CREATE OR REPLACE TABLE main.shop.late (id INT);

# COMMAND ----------

# MAGIC %sql -- # info: [MS113]
# MAGIC This cell has notes, and they are no SQL.

# COMMAND ----------

orders = spark.readStream.table("shop.orders")
orders.select("id", "ts").writeStream.option("checkpointLocation", "/lake/_a").toTable("shop.copies")

# COMMAND ----------

orders.select("nothing").writeStream.start()  # error: [MS114]

# COMMAND ----------

orders.groupBy("id").count().writeStream.format("console").outputMode("complete").start()  # info: [MS218]
