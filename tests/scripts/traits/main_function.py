# judged: 1 of 1
import logging
import os
from argparse import ArgumentParser

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, window

logger = logging.getLogger(__name__)


def parse():
    parser = ArgumentParser()
    parser.add_argument("--source", default="s3a://landing/clicks")
    parser.add_argument("--days", type=int, default=os.getenv("DAYS", "7"))
    return parser.parse_args()


def main():
    options = parse()
    spark = SparkSession.builder.appName("clicks").enableHiveSupport().getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    clicks = spark.readStream.schema("user STRING, at TIMESTAMP").json(options.source)
    counted = clicks.groupBy(window(col("at"), "1 hour"), "user").count()  # error: [MS201]
    query = counted.writeStream.outputMode("append").format("parquet").option("path", "s3a://lake/clicks")
    query.option("checkpointLocation", "s3a://lake/cp/clicks").start().awaitTermination()


if __name__ == "__main__":
    main()
