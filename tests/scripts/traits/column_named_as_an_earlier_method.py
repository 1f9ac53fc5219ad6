# judged: 1 of 1
# spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
messages = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "mill:9092")
    .option("subscribe", "sacks")
    .load()
)
messages.writeStream.format("console").start()
sacks = messages.select(messages.value.cast("string").alias("sack"), messages.offset)  # error: [MS114]
sacks.writeStream.format("console").start()
spark.streams.awaitAnyTermination()
