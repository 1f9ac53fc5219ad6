# Databricks notebook source
# judged: 2 of 2
events = spark.readStream.schema("body STRING, at TIMESTAMP").json("/Volumes/port/events")
cities = events.selectExpr("cast(body:city as string) as city", "body:ship.name as ship", "at")
cities.writeStream.option("checkpointLocation", "/Volumes/port/_cities").toTable("port.cities")

# COMMAND ----------

names = spark.sql("SELECT ship, * EXCEPT (ship) FROM STREAM(port.cities)")
names.groupBy("ship").count().writeStream.format("console").outputMode("update").start()  # warning: [MS202]
