# Fabric notebook source

# METADATA ********************

# META {
# META   "kernel_info": {
# META     "name": "synapse_pyspark"
# META   }
# META }

# PARAMETERS CELL ********************

gauge = "north"

# MARKDOWN ********************

# ## Tides

# CELL ********************

# MAGIC %run names

# CELL ********************

files = notebookutils.fs.ls("Files/harbour")
raise ValueError("the folder is empty")

# METADATA ********************

# META {
# META   "language": "python"
# META }

# CELL ********************

tides = (
    spark.readStream.format("kafka")
    .option("eventstream.itemid", __in_eventstream_item_id)
    .option("kafka.bootstrap.servers", "localhost:9092")
    .option("subscribe", gauge)
    .load()
)

# CELL ********************

# MAGIC %%sql
# MAGIC CREATE TABLE IF NOT EXISTS harbour.tides (key STRING)

# CELL ********************

counts = tides.groupBy("key").count()
counts.writeStream.option("checkpointLocation", f"{CHECKPOINTS}/tides").outputMode("append").toTable("harbour.tides")
