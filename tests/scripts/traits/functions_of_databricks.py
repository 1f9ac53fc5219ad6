# judged: 2 of 2
"""A function that Databricks has and Spark does not, in a column, in SQL and over an unknown table."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
reviews = spark.readStream.schema("id INT, review STRING").json("s3a://in/reviews")
rated = reviews.selectExpr("id", "ai_query('a-model', review) AS mood")
rated.createOrReplaceTempView("rated")
translated = spark.sql("SELECT id, mood, ai_translate(mood, 'en') AS english FROM rated")
translated.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/moods")
comments = spark.readStream.table("shop.sales.comments")  # info: [MS113]
moods = comments.selectExpr("ai_analyze_sentiment(comment) AS mood", "order_id")
moods.writeStream.option("checkpointLocation", "s3a://lake/cp2").toTable("shop.sales.moods")
spark.streams.awaitAnyTermination()
