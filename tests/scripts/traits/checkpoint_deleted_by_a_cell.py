# Databricks notebook source
# judged: 4 of 4
dbutils.widgets.dropdown("begin_again", "no", ["no", "yes"])  # info: [MS113]
BASE = "/mnt/harbour"

# COMMAND ----------

dbutils.fs.rm(f"dbfs:{BASE}/checkpoints/ships", True)
if dbutils.widgets.get("begin_again") == "yes":
    dbutils.fs.rm(f"{BASE}/checkpoints/tides", True)


def clean():
    dbutils.fs.rm(f"{BASE}/checkpoints/cranes", True)


# COMMAND ----------

rates = spark.readStream.format("rate").load()
ships = rates.writeStream.option("checkpointLocation", f"{BASE}/checkpoints/ships").start("/mnt/a")  # warning: [MS403]
tides = rates.writeStream.option("checkpointLocation", f"{BASE}/checkpoints/tides").start("/mnt/b")
cranes = rates.writeStream.option("checkpointLocation", f"{BASE}/checkpoints/cranes").start("/mnt/c")
buoys = rates.writeStream.option("checkpointLocation", f"{BASE}/buoys/checkpoint").start("/mnt/d")  # warning: [MS403]

# COMMAND ----------

for query in (ships, tides, cranes, buoys):
    query.stop()
dbutils.fs.rm(f"{BASE}/buoys", recurse=True)
