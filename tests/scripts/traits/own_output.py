# judged: 4 of 4
"""Queries that read the folder, the topic or the checkpoint that they write, and one that reads a second topic too."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
loads = spark.readStream.schema("id INT, weight DOUBLE").parquet("s3a://port/loads/")
servers = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
kafka = {"kafka.bootstrap.servers": "broker:9092", "topic": "retries"}
loads.writeStream.option("checkpointLocation", "s3a://port/_loads").start("s3a://port/loads")  # error: [MS512]
loads.writeStream.option("checkpointLocation", "s3a://port/loads").start("s3a://port/weights")  # error: [MS512] # warning: [MS401]
retries = servers.option("subscribe", "retries").load()
again = retries.writeStream.format("kafka").options(**kafka)
again.option("checkpointLocation", "s3a://port/_again").start()  # error: [MS512]
both = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
failed = both.option("subscribe", "orders,retries").load().where("value IS NULL").writeStream.format("kafka")
failed.options(**kafka).option("checkpointLocation", "s3a://port/_failed").start()
spark.streams.awaitAnyTermination()
