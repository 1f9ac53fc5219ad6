# judged: 1 of 1
"""A stream cannot be counted. The query that was started before is judged."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
gauges = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("subscribe", "g").load()
gauges.writeStream.option("checkpointLocation", "s3a://cp/gauges").start("s3a://lake/gauges")
records = gauges.count()  # error: [MS114]
print(records)
