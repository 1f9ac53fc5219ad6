# judged: 1 of 2
# spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.12:3.1.1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
messages = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "mill:9092")
    .option("subscribe", "sacks")
    .load()
)
sacks = messages.select(messages.value.cast("string").alias("sack"), messages.offset)  # info: [MS113]
sacks.writeStream.format("console").start()
messages.writeStream.format("console").start()
spark.streams.awaitAnyTermination()
