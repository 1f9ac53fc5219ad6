# judged: 2 of 2
import os

import companylib.spark as helpers  # info: [MS113]
from companylib.base import BaseJob, ConfigError, retry
from pyspark.sql import SparkSession

settings = helpers.load_settings()


class Job(BaseJob):
    topics = {**settings, "own": 1}

    @retry(times=3)
    def run(self):
        try:
            first, *others = self.settings.topics
            place = os.path.join(settings["root"], "bronze")
            number = int(settings.retries) + settings.more
            assert number <= 3 or settings
        except ConfigError:
            place = ""
        return place, first, others


spark = SparkSession.builder.getOrCreate()
place, *_ = Job("name").run()
schema = helpers.schema_of("orders")
raw = spark.readStream.schema(schema).json(place)
raw.writeStream.format("parquet").option("path", place).option(
    "checkpointLocation", settings.checkpoint
).start()
rates = spark.readStream.format("rate").load()
rates.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp").start(  # warning: [MS119]
    "s3a://lake/rates"
)
