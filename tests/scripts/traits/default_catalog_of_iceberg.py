# judged: 3 of 3
from pyspark.sql import SparkSession
from pyspark.sql.functions import window

spark = (
    SparkSession.builder.appName("buoys")
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config("spark.sql.catalog.sea", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.sea.type", "rest")
    .config("spark.sql.defaultCatalog", "sea")
    .getOrCreate()
)
spark.sql("CREATE NAMESPACE IF NOT EXISTS harbour")
spark.sql("CREATE TABLE IF NOT EXISTS harbour.waves (buoy INT, height DOUBLE, at TIMESTAMP) USING iceberg")
if not spark.catalog.tableExists("harbour.tides"):
    print(f"the catalog {spark.conf.get('spark.sql.defaultCatalog')} lacks the tides")

waves = spark.readStream.table("harbour.waves")
buoys = spark.table("harbour.buoys")  # info: [MS113]
heights = waves.groupBy(window("at", "1 minute")).max("height")  # error: [MS201]
(
    heights.writeStream.outputMode("append")
    .option("checkpointLocation", "s3://lake/checkpoints/heights")
    .toTable("harbour.heights")
)
(
    waves.join(buoys, "buoy")
    .writeStream.format("iceberg")
    .option("checkpointLocation", "s3://lake/checkpoints/waves")
    .toTable("harbour.waves_of_buoys")
)
tides = spark.readStream.table("sea.harbour.tides")  # info: [MS113]
tides.orderBy("at").writeStream.format("console").start()  # error: [MS311]
spark.streams.awaitAnyTermination()
