# Databricks notebook source
# judged: 5 of 5
people = sqlContext.readStream.schema("town string, age int").json("s3a://lake/people")
ages = people.groupBy("town").avg("age")  # error: [MS201]  # info: [MS218]

# COMMAND ----------

ages.writeStream.queryName("ages").outputMode("append").format("memory").start()

# COMMAND ----------

ages.writeStream.queryName("ages").outputMode("complete").format("memory").start()

# COMMAND ----------

people.writeStream.option("checkpointLocation", "s3a://lake/cp").toTable("people")

# COMMAND ----------

people.writeStream.option("checkpointLocation", "s3a://lake/cp").trigger(availableNow=True).toTable("people")

# COMMAND ----------

people.writeStream.option("checkpointLocation", "s3a://lake/cp").toTable("folk")  # error: [MS117]
