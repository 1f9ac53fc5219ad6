# judged: 4 of 4
"""Settings of sources that Spark refuses only when the query starts."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
topics = spark.readStream.format("kafka").option("subscribe", "orders")
nowhere = topics.option("kafka.bootstrap.servers", "").load()  # error: [MS501]
files = spark.readStream.schema("id INT").option("maxFilesPerTrigger", 1)
slow = files.option("maxBytesPerTrigger", "1g").json("/landing/orders")  # error: [MS501]
tables = spark.readStream.format("delta").schema("id INT").option("maxFilesPerTrigger", 1)
changes = tables.option("maxBytesPerTrigger", "1g").load("/lake/orders")
nowhere.writeStream.format("console").start()
slow.writeStream.format("console").start()
changes.writeStream.format("console").start()
nowhere.writeStream.format("noop").start()
spark.streams.awaitAnyTermination()
