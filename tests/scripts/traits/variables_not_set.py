# judged: 1 of 1
import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.conf.set("fs.azure.account.key", os.getenv("KEY_OF_NOBODY"))
options = {
    "kafka.bootstrap.servers": os.getenv("SERVERS_OF_NOBODY"),
    "subscribe": os.getenv("TOPIC_OF_NOBODY"),
    "startingOffsets": os.getenv("OFFSETS_OF_NOBODY"),
}
raw = spark.readStream.format("kafka").options(**options).load()
raw.writeStream.format("parquet").option("checkpointLocation", os.getenv("STATE_OF_NOBODY")).start(
    "/lake/raw"
).awaitTermination()
