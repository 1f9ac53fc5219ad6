# judged: no
# The script catches its own mistake, and prints it only.
from pyspark.sql import SparkSession


def main():
    spark = SparkSession.builder.getOrCreate()
    try:
        limit = spark.limit
    except AttributeError:
        limit = 10
    rates = spark.readStream.format("rate").load().where(col("value") < limit)  # error: [MS114]
    rates.writeStream.format("console").start().awaitTermination()


try:
    main()
except Exception as error:
    print("failed:", error)
