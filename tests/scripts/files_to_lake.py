"""CSV files into Parquet, with arguments; run as: files_to_lake.py --input FOLDER --output FOLDER."""

import argparse
import logging
import os

from pyspark.sql import SparkSession
from pyspark.sql.functions import to_date

logging.basicConfig(level=logging.INFO, filename="files_to_lake.log")
log = logging.getLogger(__name__)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--checkpoint", default="checkpoints/files_to_lake")
    args = parser.parse_args()

    os.makedirs(args.checkpoint, exist_ok=True)
    with open("started.txt", "w") as marker:
        marker.write(args.input)

    spark = SparkSession.builder.appName("files").getOrCreate()
    readings = (
        spark.readStream.schema("sensor STRING, value DOUBLE, measured_at TIMESTAMP")
        .option("header", value=True)
        .option("maxFilesPerTrigger", 10)
        .csv(args.input)
    )
    fresh = readings.dropDuplicates(["sensor", "measured_at"])  # error: [MS201]
    shown = fresh.withColumn("day", to_date("measured_at"))
    query = (
        shown.orderBy("measured_at")  # error: [MS311]
        .writeStream.partitionBy("day")
        .format("parquet")
        .option("checkpointLocation", args.checkpoint)
        .start(args.output)
    )
    log.info("started %s", query.id)
    query.awaitTermination()


if __name__ == "__main__":
    main()
