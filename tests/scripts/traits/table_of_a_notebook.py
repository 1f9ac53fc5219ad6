# Databricks notebook source
# judged: 2 of 2
arrivals = spark.readStream.schema("gate STRING, at TIMESTAMP").json("/Volumes/port/landing")
per_gate = arrivals.groupBy("gate").count()  # error: [MS201]
per_gate.writeStream.option("checkpointLocation", "/Volumes/port/cp/gates").table("port.gates")

# COMMAND ----------

ships = spark.readStream.table("port.raw.ships")  # info: [MS113]
ships.select("name").writeStream.option("checkpointLocation", "/Volumes/port/cp/ships").table("port.ships")
