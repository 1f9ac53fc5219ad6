# judged: 1 of 1
"""The rows of a table decide which of two values a script uses, and whether a function finds one."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
levels = spark.read.schema("level STRING").parquet("s3a://lake/levels")
rates = spark.readStream.format("rate").load()
rates.writeStream.format("console").start()


def find_level(number: int) -> str:
    for row in levels.collect():
        if row.level == str(number):
            return row.level
    raise LookupError("no such level")  # info: [MS114]


level = "none"
for row in levels.collect():
    level = row.level
print(int(level))  # info: [MS114]
print(find_level(3))
spark.streams.awaitAnyTermination()
