# judged: 5 of 5
"""Temporary views with the last names of tables, and two tables with the same last name."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE dim.customers (id BIGINT, name STRING) USING delta")
spark.sql("CREATE TABLE bronze.orders (id BIGINT, price DOUBLE) USING delta")
spark.sql("CREATE TABLE silver.orders (id BIGINT, total DOUBLE) USING delta")
rates = spark.readStream.format("rate").load()

rates.createOrReplaceTempView("customers")
named = spark.sql("SELECT s.value, d.name FROM customers s JOIN dim.customers d ON s.value = d.id")
named.writeStream.option("checkpointLocation", "s3a://port/_named").start("s3a://port/named")

spark.sql("SELECT bronze.orders.id, orders.price FROM bronze.orders").show()
spark.sql("CREATE OR REPLACE TEMP VIEW orders AS SELECT orders.id, price FROM bronze.orders")
priced = rates.join(spark.table("orders").withColumnRenamed("id", "value"), "value")
priced.writeStream.option("checkpointLocation", "s3a://port/_priced").start("s3a://port/priced")

both = spark.sql("SELECT id AS value, b.price, s.total FROM bronze.orders b JOIN silver.orders s USING (id)")
summed = rates.join(both, "value").selectExpr("value", "price + total AS total")
summed.writeStream.option("checkpointLocation", "s3a://port/_summed").start("s3a://port/summed")

again = rates.join(spark.sql("SELECT id AS value, price FROM orders"), "value").select("price")
again.writeStream.option("checkpointLocation", "s3a://port/_again").start("s3a://port/again")

spark.sql("CREATE TABLE bronze.fees (id BIGINT, price DOUBLE) USING delta")
spark.sql("CREATE TABLE fees (id BIGINT, fee DOUBLE) USING delta")
spark.sql("SELECT fees.price FROM bronze.fees").show()
charged = rates.join(spark.sql("SELECT id AS value, fee FROM fees"), "value").select("fee")
charged.writeStream.option("checkpointLocation", "s3a://port/_charged").start("s3a://port/charged")
spark.streams.awaitAnyTermination()
