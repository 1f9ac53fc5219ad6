# judged: 1 of 2
# spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.11:2.4.5
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
trades = spark.readStream.schema("market string, data struct<price: string>").json("s3a://lake/trades")
prices = trades.select("market", F.col("data.price").cast("double"))
last = prices.select("market", "price")  # info: [MS113]
last.writeStream.format("console").start()
prices.writeStream.format("console").start()
spark.streams.awaitAnyTermination()
