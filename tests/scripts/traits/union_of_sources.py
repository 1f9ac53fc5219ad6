# judged: 1 of 1
from functools import reduce

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
frames = [
    spark.readStream.schema("id INT, at TIMESTAMP").json(f"in/{region}").withColumn("region", F.lit(region))
    for region in ("eu", "us", "asia")
]
everything = reduce(lambda left, right: left.unionByName(right), frames)
counts = everything.withWatermark("at", "1 hour").groupBy(F.window("at", "1 day"), "region").count()
counts.writeStream.outputMode("append").format("parquet").option("checkpointLocation", "s3a://lake/cp").start(
    "s3a://lake/days"
).awaitTermination()
