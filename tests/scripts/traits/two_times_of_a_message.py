# judged: 3 of 3
"""Groups by a time that is computed from event time below the watermark, and by another time of the message."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
messages = spark.readStream.schema("message STRUCT<began: TIMESTAMP, ended: TIMESTAMP>").json("in/ships")
ships = messages.select("message.*")

hours = ships.withColumn("hour", F.date_trunc("hour", "ended")).withWatermark("ended", "1 hour")
hours.groupBy("hour").count().writeStream.outputMode("update").format("console").start()  # error: [MS203]
ended = ships.withWatermark("ended", "1 hour")
for window in (F.window("began", "1 hour"), F.window("began", "1 hour", "20 minutes")):
    began = ended.groupBy(window).count()  # info: [MS218]
    began.writeStream.outputMode("update").format("console").start()
spark.streams.awaitAnyTermination()
