# judged: no
import os

from pyspark.sql import SparkSession


class Job:
    def __init__(self, spark, codec):
        self.spark = spark
        self.codec = codec
        self.spark.conf.set("spark.sql.shuffle.partitions", "8")
        self.spark.conf.set("spark.sql.warehouse.dir", "s3a://lake/warehouse")
        self.spark.conf.set("spark.hadoop.fs.s3a.fast.upload", "true")
        self.spark.conf.set("spark.shop.codec", self.codec)
        self.spark.conf.set("spark.speculation", "true")  # error: [MS114]


session = SparkSession.builder.config("spark.speculation", "false").getOrCreate()
codec = os.environ["SHOP_CODEC"]  # info: [MS113]
Job(session, codec)
rates = session.readStream.format("rate").load()
rates.writeStream.format("console").start().awaitTermination()
