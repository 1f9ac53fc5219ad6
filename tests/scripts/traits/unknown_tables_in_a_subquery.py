# judged: 2 of 2
"""Tables that nobody knows here: a subquery reads one of two, and a table of history has its own columns."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
afloat = spark.sql(  # info: [MS113] # info: [MS113]
    "SELECT k.kind, s.weight FROM port.kinds k JOIN (SELECT number, weight FROM port.ships WHERE is_afloat) s"
    " ON k.number = s.number"
)
numbers = spark.readStream.format("rate").load().withColumnRenamed("value", "weight")
numbers.join(afloat, "weight").writeStream.option("checkpointLocation", "s3a://port/_a").start("s3a://port/a")
captains = spark.table("port.captains")  # info: [MS113]
current = captains.where(captains.__END_AT.isNull() & captains.weight.isNotNull())
numbers.join(current, "weight").writeStream.option("checkpointLocation", "s3a://port/_b").start("s3a://port/b")
spark.streams.awaitAnyTermination()
