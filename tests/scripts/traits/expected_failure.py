# judged: 1 of 1
"""A command that is expected to fail, and an error of the script's own if it does not."""

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
try:
    spark.sql("ALTER TABLE lake.ports ADD CONSTRAINT valid CHECK (depth > 0)")
    raise Exception("Expected failure")  # info: [MS113]
except AnalysisException as error:
    print(f"failed as expected: {error}")
rates = spark.readStream.format("rate").load()
rates.writeStream.format("console").start().awaitTermination()
