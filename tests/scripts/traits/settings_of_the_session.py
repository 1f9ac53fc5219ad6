# judged: 3 of 3
"""Settings and limits that a spec is asked about too."""

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.config("spark.sql.streaming.stateStore.stateSchemaCheck", "false")  # error: [MS402]
    .config("spark.sql.streaming.statefulOperator.checkCorrectness.enabled", True)
    .config("spark.sql.caseSensitive", "true")  # warning: [MS406]
    .getOrCreate()
)


def read(topic):
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "b:9092")
    return kafka.option("subscribe", topic)


newest = read("ships").load()
oldest = read("tides").option("startingOffsets", "earliest").load()  # warning: [MS514]
limited = read("berths").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 1000).load()
for number, ships in enumerate((newest, oldest, limited)):
    ships.writeStream.option("checkpointLocation", f"s3a://lake/cp/{number}").start(f"s3a://lake/{number}")
spark.streams.awaitAnyTermination()
