# judged: 1 of 1
"""A function that Databricks has and Spark does not, in a column and in SQL."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
reviews = spark.readStream.schema("id INT, review STRING").json("s3a://in/reviews")
rated = reviews.selectExpr("id", "ai_query('a-model', review) AS mood")
rated.createOrReplaceTempView("rated")
translated = spark.sql("SELECT id, mood, ai_translate(mood, 'en') AS english FROM rated")
translated.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/moods")
spark.streams.awaitAnyTermination()
