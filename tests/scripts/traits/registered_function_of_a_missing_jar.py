# judged: 1 of 1
"""A query in SQL with a function of a jar that is not there."""

from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

spark = SparkSession.builder.getOrCreate()
spark.udf.registerJavaFunction("cell", "com.lake.udf.Cell", IntegerType())  # info: [MS113]
ticks = spark.readStream.format("rate").load().selectExpr("cell(value) + 1 AS cell", "timestamp")
ticks.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp/a").start("s3a://lake/a").awaitTermination()
