# judged: 1 of 1
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, explode, to_timestamp
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

item = StructType([StructField("sku", StringType()), StructField("price", StringType())])
order = StructType(
    [
        StructField("id", StringType()),
        StructField("placed", StringType()),
        StructField("items", ArrayType(item)),
    ]
)
spark = SparkSession.builder.appName("orders").getOrCreate()
orders = spark.readStream.schema(order).json("in/orders")
items = (
    orders.withColumn("placed_at", to_timestamp("placed"))  # warning: [MS550]
    .withColumn("item", explode("items"))
    .select("id", "placed_at", "item.sku", col("item.price").cast("double").alias("price"))
)
items.writeStream.format("delta").option("checkpointLocation", "s3a://lake/cp/items").start("s3a://lake/items")  # warning: [MS119]
