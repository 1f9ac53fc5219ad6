# judged: 1 of 1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
events = spark.readStream.schema("id INT, kind STRING").json("in/events")


def store(batch, number):
    batch.write.format("delta").mode("append").save("s3a://lake/events")  # warning: [MS341]
    batch.groupBy("kind").count().write.jdbc("jdbc:postgresql://db/shop", "kinds", "append")  # warning: [MS342]


events.writeStream.foreachBatch(store).option("checkpointLocation", "s3a://lake/cp").start().awaitTermination()
