"""Bronze, silver and gold: a script that reads what it writes, and a table that only a database knows."""

from delta.tables import DeltaTable  # info: [MS113]
from pyspark.sql import SparkSession
from pyspark.sql.functions import current_timestamp, window

spark = SparkSession.builder.appName("medallion").getOrCreate()
LAKE = "s3a://lake"

bronze = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "broker.invalid:9092")
    .option("subscribe", "trips")
    .load()
    .selectExpr("CAST(key AS STRING) AS trip", "CAST(value AS STRING) AS city", "timestamp AS ts")
)
bronze.writeStream.format("delta").option("checkpointLocation", f"{LAKE}/_cp/bronze").start(f"{LAKE}/bronze")

silver = spark.readStream.format("delta").load(f"{LAKE}/bronze").withColumn("seen", current_timestamp())
silver.writeStream.option("checkpointLocation", f"{LAKE}/_cp/silver").toTable("silver.trips")

cities = (
    spark.read.format("jdbc")
    .option("url", "jdbc:postgresql://db.invalid/shop")
    .option("dbtable", "cities")
    .load()  # info: [MS113]
)
named = spark.readStream.table("silver.trips").join(cities, "city")
named.writeStream.format("delta").option("checkpointLocation", f"{LAKE}/_cp/named").start(f"{LAKE}/named")


def merge(batch, batch_id):
    table = DeltaTable.forPath(spark, f"{LAKE}/gold")
    table.alias("t").merge(batch.alias("b"), "t.city = b.city").whenMatchedUpdateAll().execute()


gold = (
    spark.readStream.table("silver.trips")
    .withWatermark("ts", "10 minutes")
    .groupBy(window("ts", "5 minutes"), "city")
    .count()
)
(
    gold.writeStream.outputMode("update")
    .foreachBatch(merge)
    .option("checkpointLocation", f"{LAKE}/_cp/gold")
    .start()
)
spark.streams.awaitAnyTermination()
