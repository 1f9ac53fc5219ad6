# judged: 2 of 2
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
step = F.array(F.struct(F.current_timestamp().alias("at"), F.lit("baked").alias("step")))
loaves = spark.readStream.table("bakery.raw.loaves")  # info: [MS113]
baked = loaves.withColumn("history", F.array_union(F.col("log.steps"), step))
baked.select("loaf", "history").writeStream.option("checkpointLocation", "/lake/_baked").toTable("baked")
trays = spark.readStream.table("bakery.raw.trays")  # info: [MS113]
moved = trays.select("tray", F.concat("steps", step).alias("steps"))
moved.writeStream.option("checkpointLocation", "/lake/_moved").toTable("moved")
spark.streams.awaitAnyTermination()
