# judged: 1 of 1
import argparse
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass
class Settings:
    source: str
    target: str
    minutes: int


def parse() -> Settings:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", default="in/events")
    parser.add_argument("--target", default="s3a://lake/events")
    parser.add_argument("--minutes", type=int, default=5)
    return Settings(**vars(parser.parse_args()))


def main(settings: Settings) -> None:
    spark = SparkSession.builder.getOrCreate()
    events = spark.readStream.schema("id INT, at TIMESTAMP").csv(settings.source)
    (
        events.writeStream.format("parquet")
        .option("checkpointLocation", f"{settings.target}/_checkpoint")
        .trigger(processingTime=f"{settings.minutes} minutes")
        .start(settings.target)
        .awaitTermination()
    )


if __name__ == "__main__":
    main(parse())
