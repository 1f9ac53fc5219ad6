# judged: 1 of 1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
orders = spark.readStream.table("bronze.orders")  # info: [MS113]


def store(batch, _number):
    batch.write.format("jdbc").mode("append").option("url", "jdbc:x").option("dbtable", "t").save()  # warning: [MS341]


query = orders.writeStream.foreachBatch(store).option("checkpointLocation", "s3a://cp/orders").start()
query.awaitTermination()
