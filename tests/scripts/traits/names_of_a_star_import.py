# judged: 1 of 2
from harbour.tools import *  # info: [MS113]
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
berths = BerthTable.for_port("north")  # info: [MS113]
calls = spark.readStream.format("rate").load()
calls.writeStream.format("parquet").option("checkpointLocation", "s3a://port/cp/calls").start("s3a://port/calls")
lengths = berths.lengths(calls)
lengths.writeStream.format("parquet").option("checkpointLocation", "s3a://port/cp/l").start("s3a://port/l")
spark.streams.awaitAnyTermination()
