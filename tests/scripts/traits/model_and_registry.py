# judged: 5 of 5
"""A model that is not here adds columns, and messages have a schema that only a registry knows."""

from pyspark.ml import PipelineModel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from registry_client import latest_schema  # info: [MS113]

spark = SparkSession.builder.getOrCreate()
servers = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
topic = servers.option("subscribe", "trips").load()
model = PipelineModel.load("models/fares")  # info: [MS113]
trips = topic.select(F.col("value").cast("string").alias("text"), "timestamp")
scored = model.transform(trips).where("prediction > 3").select("text", "prediction", "probability")
scored.writeStream.option("checkpointLocation", "/lake/_scored").start("/lake/scored")
decoded = topic.select(from_avro("value", latest_schema("trips")).alias("trip")).select("trip.*")  # warning: [MS553]
decoded.writeStream.option("checkpointLocation", "/lake/_trips").start("/lake/trips")
by_city = decoded.groupBy("city").count()  # warning: [MS202]
by_city.writeStream.outputMode("update").format("console").start()
wide = topic.select(F.from_json(F.col("value").cast("string"), latest_schema("wide")).alias("w"))
wide.where("w.id IS NOT NULL").writeStream.option("checkpointLocation", "/lake/_wide").start("/lake/wide")
parsed = topic.withColumn("ship", latest_schema("ships")("value")).where("ship.name.first = 'a'")
parsed.writeStream.option("checkpointLocation", "/lake/_ships").start("/lake/ships")
spark.streams.awaitAnyTermination()
