# judged: 5 of 6
"""Tables that only a catalog knows have the columns that the script names, and no types."""

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.table("shop.orders")  # info: [MS113]
users = spark.table("shop.users")  # info: [MS113]
joined = orders.where(F.col("amount") > 3).join(users, orders.user_id == users.id, "left")
hours = joined.groupBy(F.window("ts", "1 hour"), "country").agg(F.sum("amount"))  # error: [MS201]
hours.writeStream.outputMode("update").format("console").start()
late = orders.withWatermark("ts", "1 hour").groupBy(F.window("ts", "1 hour"), "kind").count()
late.writeStream.option("checkpointLocation", "/lake/_late").toTable("shop.late")
orders.createOrReplaceTempView("o")
cities = spark.sql("SELECT address.city, explode(tags) AS tag, CAST(amount AS INT) AS amount FROM o WHERE kind = 'a'")
cities.dropDuplicates(["city"]).writeStream.format("console").start()  # error: [MS201]
by_day = orders.withColumn("day", F.to_date("ts")).writeStream.partitionBy("day", "kind")
by_day.option("checkpointLocation", "/lake/_days").start("/lake/days")
fields = orders.select("address.*").groupBy("street").count()
fields.writeStream.outputMode("update").format("console").start()
both = reduce(DataFrame.unionAll, [orders.select("kind"), orders.select("country")])
both.writeStream.option("checkpointLocation", "/lake/_both").start("/lake/both")
spark.streams.awaitAnyTermination()
