# Databricks notebook source
# judged: 1 of 1
# MAGIC %run ../traitlib/harbour

# COMMAND ----------

root = Harbour().folder
ships = spark.readStream.schema("ship STRING").json(root + "/ships")
ships.writeStream.option("checkpointLocation", root + "/cp").start(root + "/lake")

# COMMAND ----------

quays = Quays()  # error: [MS114]
