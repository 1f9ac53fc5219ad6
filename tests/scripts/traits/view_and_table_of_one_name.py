# judged: 8 of 8
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
spark.sql("CREATE TEMP VIEW prices AS SELECT fees.price FROM bronze.fees")
charged = rates.join(spark.sql("SELECT id AS value, fee FROM fees"), "value").select("fee")
charged.writeStream.option("checkpointLocation", "s3a://port/_charged").start("s3a://port/charged")
prices = rates.join(spark.sql("SELECT price FROM prices")).select("price")
prices.writeStream.option("checkpointLocation", "s3a://port/_prices").start("s3a://port/prices")

spark.sql("CREATE TABLE bronze.taxes (id BIGINT, price DOUBLE) USING delta")
spark.sql("SELECT taxes.price FROM bronze.taxes").show()
spark.sql("CREATE TABLE taxes (id BIGINT, tax DOUBLE) USING delta")
taxed = rates.join(spark.sql("SELECT id AS value, tax FROM taxes"), "value").select("tax")
taxed.writeStream.option("checkpointLocation", "s3a://port/_taxed").start("s3a://port/taxed")

spark.sql("CREATE TABLE bronze.costs (id BIGINT, price DOUBLE) USING delta")
spark.sql("SELECT costs.price FROM bronze.costs").show()
spark.sql("CREATE TABLE costs (id BIGINT, cost DOUBLE) USING delta")
costed = rates.join(spark.table("costs").withColumnRenamed("id", "value"), "value").select("cost")
costed.writeStream.option("checkpointLocation", "s3a://port/_costed").start("s3a://port/costed")
spark.streams.awaitAnyTermination()
