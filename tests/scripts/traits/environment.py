# judged: 1 of 1
import os

from pyspark.sql import SparkSession

broker = os.environ["BROKER_OF_NOBODY"]  # info: [MS113]
spark = SparkSession.builder.getOrCreate()
raw = (
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker).option("subscribe", "a").load()
)
query = (
    raw.writeStream.format("kafka").option("kafka.bootstrap.servers", broker).option("topic", "b").start()  # error: [MS116]
)
query.awaitTermination()
