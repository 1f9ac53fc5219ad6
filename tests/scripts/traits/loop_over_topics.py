# judged: 3 of 3
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

TOPICS = {"orders": "id INT, at TIMESTAMP", "clicks": "page STRING, at TIMESTAMP", "users": "id INT, name STRING"}

spark = SparkSession.builder.getOrCreate()


def read(topic, schema):
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", "b:9092")
        .option("subscribe", topic)
        .load()
    )
    value = F.from_json(F.col("value").cast("string"), schema)
    return raw.select(value.alias("d")).select("d.*")  # warning: [MS553]


queries = [
    read(topic, schema)
    .writeStream.format("parquet")
    .option("checkpointLocation", f"s3a://lake/cp/{topic}")
    .start(f"s3a://lake/{topic}")
    for topic, schema in TOPICS.items()
]
for query in queries:
    query.awaitTermination()
