# judged: 0 of 1
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
users = spark.table("shop.users").where(F.col("active")).withColumn("n", F.lit(1))  # info: [MS113]
wide = users.filter(users.age > 3).select(F.col("id"), "n")
rates = spark.readStream.format("rate").load()
rates.join(wide, "id").writeStream.format("console").start().awaitTermination()
