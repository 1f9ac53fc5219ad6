# judged: 2 of 2
"""Records that a source skips silently: an error where the sink writes each row once, a warning before a console.

Nothing is missing from a stream that no query reads.
"""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092")
ships = kafka.option("subscribe", "ships").option("failOnDataLoss", "false").load()  # warning: [MS504]
ships.writeStream.format("console").start()
tides = spark.readStream.schema("at TIMESTAMP").option("ignoreMissingFiles", "true").json("in/tides")  # error: [MS504]
tides.writeStream.option("checkpointLocation", "s3a://lake/cp").toTable("lake.tides")
kafka.option("subscribe", "unread").option("failOnDataLoss", "false").load().select("value")
spark.streams.awaitAnyTermination()
