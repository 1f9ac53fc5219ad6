# Databricks notebook source
# judged: 1 of 1
try:
    key = sc._jvm.org.apache.spark.eventhubs.EventHubsUtils.encrypt("Endpoint=…")
    events = spark.readStream.format("eventhubs").option("eventhubs.connectionString", key).load()
    events.writeStream.format("delta").option("checkpointLocation", "/mnt/cp").toTable("bronze.events")
except Exception as error:
    print(f"failed: {error}")
