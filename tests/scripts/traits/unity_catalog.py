# judged: 1 of 1
"""Commands and methods that Databricks has and Spark does not."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE CATALOG IF NOT EXISTS trade")
spark.sql("USE CATALOG trade")
spark.sql("GRANT SELECT ON SCHEMA trade.bronze TO `readers`")
spark.sql("CREATE EXTERNAL VOLUME trade.bronze.landing LOCATION 's3://landing/'")
spark.range(3).display()

rows = spark.readStream.format("rate").load()
rows.orderBy("value").writeStream.format("console").start().awaitTermination()  # error: [MS311]
