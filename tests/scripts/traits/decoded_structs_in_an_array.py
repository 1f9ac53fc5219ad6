# judged: 2 of 2
"""Messages that are decoded into an array of structs, with and without dropping those that are invalid."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("startingOffsets", "latest")
story = F.from_json(F.col("value").cast("string"), "title STRING, at BIGINT")
stories = kafka.option("subscribe", "stories").load().select(story.alias("story"))
valid = stories.select(F.explode(F.array("story"))).select("col.*").dropna()
valid.writeStream.format("delta").option("checkpointLocation", "s3a://lake/cp/a").start("s3a://lake/a")
report = F.from_json(F.col("value").cast("string"), "title STRING, at BIGINT")
reports = kafka.option("subscribe", "reports").load().select(F.explode(F.array(report)))  # warning: [MS553]
reports = reports.select("col.*")
reports.writeStream.format("delta").option("checkpointLocation", "s3a://lake/cp/b").start("s3a://lake/b")
spark.streams.awaitAnyTermination()
