# judged: 2 of 2
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE IF NOT EXISTS lake.totals (user STRING, n BIGINT) USING delta")
spark.readStream.table("lake.clicks").createOrReplaceTempView("clicks")  # info: [MS113]
totals = spark.sql("SELECT user, count(*) AS n FROM clicks GROUP BY user")  # info: [MS218]
totals.writeStream.outputMode("complete").option("checkpointLocation", "s3a://cp/t").toTable("lake.totals")
rates = spark.readStream.format("rate").load()
rates.createOrReplaceTempView("rates")
numbered = spark.sql("SELECT value, count(*) AS n FROM rates GROUP BY value")  # error: [MS201]
numbered.writeStream.outputMode("append").format("console").start()
spark.streams.awaitAnyTermination()
