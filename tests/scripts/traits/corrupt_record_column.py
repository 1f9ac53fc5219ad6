# judged: 1 of 1
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

schema = ""
for name in ("id", "page", "country"):
    schema += f"{name} STRING, "
schema += "_corrupt_record STRING"

spark = SparkSession.builder.getOrCreate()
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("subscribe", "clicks")
    .load()
)
clicks = raw.select(F.from_json(F.col("value").cast("string"), schema).alias("d")).select("d.*")
query = (
    clicks.writeStream.format("parquet")
    .option("checkpointLocation", "s3a://lake/cp/clicks")
    .start("s3a://lake/clicks")
)
query.awaitTermination()
