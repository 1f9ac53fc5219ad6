# judged: 2 of 3
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE OR REPLACE VIEW lake.gold.ships AS SELECT name FROM lake.silver.ships")  # info: [MS113]
spark.sql("CREATE VIEW IF NOT EXISTS towns AS SELECT 1 AS size")
spark.sql("CREATE VIEW IDENTIFIER('lake.gold.' || 'quays') AS SELECT 1 AS size")
spark.sql("CREATE TEMPORARY VIEW rates AS SELECT 1 AS size")
for name in ("lake.gold.ships", "towns", "rates"):
    rates = spark.readStream.format("rate").load()
    rates.join(spark.table(name)).writeStream.format("console").start()  # info: [MS113]
spark.streams.awaitAnyTermination()
