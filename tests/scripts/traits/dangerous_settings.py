# judged: 3 of 3
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.sql.streaming.schemaInference", "true").getOrCreate()
kafka = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("subscribe", "orders")
    .option("startingOffset", "earliest")  # warning: [MS501]
    .option("failOnDataLoss", "false")  # error: [MS504]
    .load()
)
# A folder for temporary files, which MS403 is about.
kafka.writeStream.format("parquet").option("checkpointLocation", "/tmp/cp/a").start(  # warning: [MS403]
    "s3a://lake/a"
)
last = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("subscribe", "orders")
    .option("startingOffsets", "last")  # error: [MS501]
    .load()
)
last.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start("s3a://lake/b")
kafka.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp/c").start(  # error: [MS401]
    "s3a://lake/c"
)
spark.streams.awaitAnyTermination()
