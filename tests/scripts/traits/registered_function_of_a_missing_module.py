# judged: 3 of 3
"""Queries in SQL with functions that the script registers from a module that is not there."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType
from scorelib import Scorer, score, words  # info: [MS113]

spark = SparkSession.builder.getOrCreate()
spark.udf.register("score", score)
spark.udf.register("weight", Scorer().weight, "double")
words_of = spark.udf.register("words", words, ArrayType(StringType()))
ticks = spark.readStream.format("rate").load()
ticks.createOrReplaceTempView("ticks")
scored = spark.sql("SELECT score(value) AS score, timestamp FROM ticks")
scored.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp/a").start("s3a://lake/a")
weighed = ticks.withColumn("weight", F.expr("weight(value) / 2"))
weighed.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp/b").start("s3a://lake/b")
parts = ticks.selectExpr("explode(words(CAST(value AS STRING))) AS word")
parts.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp/c").start("s3a://lake/c")
spark.streams.awaitAnyTermination()
