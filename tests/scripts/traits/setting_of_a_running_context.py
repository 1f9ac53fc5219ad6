# judged: no
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.speculation", "false").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "8")
spark.conf.set("spark.sql.warehouse.dir", "s3a://lake/warehouse")
spark.conf.set("spark.hadoop.fs.s3a.fast.upload", "true")
spark.conf.set("spark.shop.topic", "orders")
spark.conf.set("spark.speculation", "true")  # error: [MS114]
rates = spark.readStream.format("rate").load()
rates.writeStream.format("console").start().awaitTermination()
