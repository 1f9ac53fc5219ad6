# judged: 7 of 7
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("subscribe", "boats")
    .load()
)
schema = "boat STRING, knots DOUBLE, sails ARRAY<STRING>"
harbours = spark.createDataFrame([("Ada", "Hull")], "boat STRING, harbour STRING")
boats = raw.select(F.from_json(F.col("value").cast("string"), schema).alias("d"), "timestamp").select(
    "d.*", "timestamp"
)
fast = boats.withColumn("kmh", F.col("knots") * 1.852).filter(F.col("kmh") > 20)
named = boats.dropna(subset=["boat"])
moored = boats.join(harbours, "boat")
sails = boats.select("boat", F.explode("sails").alias("sail"))
known = boats.filter(~F.col("boat").isin("Ada", "Bea"))
for number, frame in enumerate([fast, named, moored, sails, known]):
    to_lake = frame.writeStream.queryName(f"boats{number}").option("checkpointLocation", f"s3a://cp/{number}")
    to_lake.start(f"s3a://lake/{number}")
kept = raw.select(  # warning: [MS553]
    F.from_json(F.col("value").cast("string"), schema).alias("d"), "timestamp"
).select("d.*", "timestamp")
late = kept.filter((F.col("knots") > 9) | (F.col("timestamp") > "2026-01-01"))
late.writeStream.queryName("late").option("checkpointLocation", "s3a://cp/late").start("s3a://lake/late")
counted = raw.select(  # warning: [MS553]
    F.from_json(F.col("value").cast("string"), schema).alias("d")
).select("d.*")
counted = counted.filter(~F.col("boat").eqNullSafe("Ada"))
counted.writeStream.queryName("slow").option("checkpointLocation", "s3a://cp/slow").start("s3a://lake/slow")
spark.streams.awaitAnyTermination()
