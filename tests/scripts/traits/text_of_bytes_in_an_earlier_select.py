# judged: 5 of 5
"""Bytes of messages are cast to text in one select, and parts of the text are read in the next one."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
servers = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092")
lines = servers.option("subscribe", "ships").load().selectExpr("CAST(value AS STRING) AS line")
tonnes = lines.selectExpr("split(line, ';')[2] AS tonnes")  # warning: [MS551]
tonnes.writeStream.format("console").start()
sizes = lines.selectExpr("CAST(line AS INT) AS size")  # warning: [MS550]
sizes.writeStream.format("console").start()
numbers = lines.where("line RLIKE '^[0-9]+$'").selectExpr("CAST(line AS INT) AS number")
numbers.writeStream.format("console").start()
texts = lines.select("line").withColumnRenamed("line", "text")
short = texts.selectExpr("CAST(text AS INT) AS n")  # warning: [MS550]
short.writeStream.format("console").start()
names = lines.select(F.split("line", ";")[0].alias("name"))
names.writeStream.format("console").start()
spark.streams.awaitAnyTermination()
