# judged: 2 of 2
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.schema("id long, day string").json("s3a://lake/events")
for name, trigger in (("once", {"once": True}), ("available", {"availableNow": True})):
    writer = events.writeStream.format("parquet").partitionBy("DAY").option("checkpointLocation", f"s3a://lake/cp/{name}")
    writer = writer.trigger(**trigger)  # warning: [MS303]
    writer.start(f"s3a://lake/{name}").awaitTermination()
