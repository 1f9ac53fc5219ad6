# judged: 2 of 2
from confluentregistry import RegistryClient  # info: [MS113]
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr

spark = SparkSession.builder.getOrCreate()
schema = RegistryClient({"url": "http://registry:8081"}).get_latest_version("orders-value").schema.schema_str
raw = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092").option("subscribe", "o").load()
orders = raw.select(from_avro(expr("substring(value, 6, length(value) - 5)"), schema).alias("o")).select("o.*")  # warning: [MS553]
orders.writeStream.format("parquet").option("checkpointLocation", "s3a://cp/a").start("s3a://lake/orders")
keys = raw.select(col("key").cast("string"))
keys.dropDuplicates().writeStream.format("console").start()  # error: [MS201]
spark.streams.awaitAnyTermination()
