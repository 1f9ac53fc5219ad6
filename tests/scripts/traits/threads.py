# judged: 2 of 2
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def load(name):
    frame = spark.readStream.schema("id INT").json(f"s3a://landing/{name}")
    writer = frame.writeStream.queryName(name).trigger(availableNow=True)
    writer.option("checkpointLocation", f"s3a://cp/{name}").format("parquet").start(f"s3a://lake/{name}").awaitTermination()


with ThreadPoolExecutor(4) as pool:
    list(pool.map(load, ["a", "b"]))
