# judged: 2 of 2
"""The elements of an array, whose fields are read, have a name. Nothing is known of the array but its name."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.table("bakery.orders")  # info: [MS113]
items = orders.select("shop", F.explode(orders.items).alias("item"))
sums = items.groupBy("shop", items.item.currency.alias("in")).agg(F.sum(items.item.price))  # info: [MS218]
sums.writeStream.outputMode("complete").format("console").start()
taxes = orders.withColumn("tax", F.explode_outer("taxes")).select("shop", F.col("tax.rate").alias("rate"))
taxes.writeStream.option("checkpointLocation", "/data/checkpoints/taxes").toTable("bakery.taxes")
spark.streams.awaitAnyTermination()
