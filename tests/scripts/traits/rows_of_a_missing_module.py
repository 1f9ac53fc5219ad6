# judged: 1 of 1
"""Rows whose values a module that is not installed makes up, with columns that are given."""

from faker_of_rows import Faker  # info: [MS113]
from pyspark.sql import Row, SparkSession

spark = SparkSession.builder.getOrCreate()
fake = Faker()


def make_shops():
    rows = [Row(shop_id=number, city=fake.city(), staff=fake.random_int()) for number in range(3)]
    return spark.createDataFrame(rows, schema="shop_id INT, city STRING, staff INT")


sales = spark.readStream.schema("shop_id INT, amount DOUBLE").json("in/sales")
named = sales.join(make_shops(), "shop_id").where("staff > 2").select("city", "amount")
query = named.groupBy("city").sum("amount").writeStream.outputMode("append")  # error: [MS201]
query.option("checkpointLocation", "s3a://lake/cp").format("parquet").start("s3a://lake/cities").awaitTermination()
