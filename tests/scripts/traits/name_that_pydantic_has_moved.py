# judged: 1 of 1
"""Settings of pydantic 1, in an environment with pydantic 2."""

from pydantic import BaseSettings  # info: [MS113]
from pyspark.sql import SparkSession


class Settings(BaseSettings):
    folder: str = "/lake/ports"


settings = Settings()
spark = SparkSession.builder.getOrCreate()
rates = spark.readStream.format("rate").load()
rates.writeStream.option("checkpointLocation", "/lake/cp").start(settings.folder).awaitTermination()
