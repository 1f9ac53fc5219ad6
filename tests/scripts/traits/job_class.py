# judged: 2 of 2
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession


@dataclass
class Settings:
    brokers: str = "b:9092"
    topic: str = "orders"


class Job:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.spark = SparkSession.builder.getOrCreate()

    def read(self) -> DataFrame:
        reader = self.spark.readStream.format("kafka").options(
            **{"kafka.bootstrap.servers": self.settings.brokers, "subscribe": self.settings.topic}
        )
        return reader.load()

    def write(self, frame: DataFrame, name: str):
        return frame.writeStream.queryName(name).format("parquet").option(
            "checkpointLocation", f"s3a://cp/{name}"
        ).start(f"s3a://lake/{name}")

    def run(self) -> None:
        raw = self.read()
        self.write(raw, "raw")
        self.write(raw.dropDuplicates(["key"]), "once")  # error: [MS201]
        self.spark.streams.awaitAnyTermination()


Job(Settings()).run()
