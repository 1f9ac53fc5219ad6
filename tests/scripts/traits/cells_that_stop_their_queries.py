# Databricks notebook source
# judged: 2 of 2
import time

people = spark.readStream.schema("town string, age int").json("s3a://lake/people")
query = people.writeStream.format("console").option("checkpointLocation", "file:///").start()
start = time.time()
while (time.time() - start) < 20 and query.isActive:
    time.sleep(1)
if query.isActive == True:
    query.stop()

# COMMAND ----------

query = people.writeStream.format("console").option("checkpointLocation", "file:///").start()
query.awaitTermination()
