# Databricks notebook source
# judged: 2 of 2
people = spark.readStream.schema("town string, age int").json("s3a://lake/people")
first = people.writeStream.format("console").start()
first.awaitTermination()  # warning: [MS119]

# COMMAND ----------

second = people.writeStream.format("console").start()
second.awaitTermination()
