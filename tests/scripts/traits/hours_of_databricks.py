# Databricks notebook source
# judged: 1 of 1
from pyspark.sql.functions import date_trunc

events = spark.readStream.schema("body STRING, at TIMESTAMP").json("/Volumes/port/events")
hours = events.withWatermark("at", "1 hour").groupBy(date_trunc("hour", "at").alias("hour")).count()  # info: [MS218]
hours.writeStream.outputMode("complete").format("console").start()
