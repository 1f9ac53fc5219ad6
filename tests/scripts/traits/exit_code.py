# judged: 1 of 1
import sys

from pyspark.sql import SparkSession


def main():
    spark = SparkSession.builder.getOrCreate()
    try:
        rates = spark.readStream.format("rate").load()
        rates.writeStream.format("console").start().awaitTermination()
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
