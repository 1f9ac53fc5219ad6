"""A stream that is queried by SQL over temporary views."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")

spark.readStream.schema("user STRING, amount DOUBLE, ts TIMESTAMP").parquet(
    "/landing/payments"
).createOrReplaceTempView("payments")

spark.sql("CREATE OR REPLACE TEMPORARY VIEW large AS SELECT * FROM payments WHERE amount > 100")
totals = spark.sql("""
    SELECT user,
           sum(amount) AS total
    FROM large
    GROUP BY user  -- warning: [MS202]
""")
spark.sql("CREATE TABLE IF NOT EXISTS shop.totals (user STRING, total DOUBLE) USING delta")

query = totals.writeStream.outputMode("update").format("console").option("truncate", value=False).start()

wrong = (
    spark.sql("""
    SELECT usr, amount  -- error: [MS114]
    FROM payments
""")
    .writeStream.format("console")
    .start()
)
