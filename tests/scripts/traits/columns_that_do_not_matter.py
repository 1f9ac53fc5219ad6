# judged: 4 of 4
"""The columns of a table in a catalog are not known; some queries over it need none of them."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("orders").getOrCreate()
orders = spark.readStream.table("shop.orders")  # info: [MS113]
copied = orders.drop("note").withColumn("copied_at", F.current_timestamp())
copied.writeStream.option("checkpointLocation", "/lake/cp/copied").toTable("shop.copied")
spark.table("shop.orders").createOrReplaceTempView("orders_now")  # info: [MS113]
known = spark.readStream.table("shop.orders").distinct()  # error: [MS201]  # info: [MS113]
known.writeStream.option("checkpointLocation", "/lake/cp/known").toTable("shop.known")
whole = orders.writeStream.option("checkpointLocation", "/lake/cp/whole").outputMode("complete")  # error: [MS311]
whole.toTable("shop.whole")
large = orders.where("amount > 100")
large.writeStream.option("checkpointLocation", "/lake/cp/large").toTable("shop.large")
spark.streams.awaitAnyTermination()
