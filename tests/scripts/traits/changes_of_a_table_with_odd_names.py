# judged: 1 of 1
"""The changes of a table that the script writes, with names of columns and of fields that need quotes."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
loads = spark.createDataFrame([], "`load-id` INT, payload STRUCT<`from-port`: STRING>")
loads.write.format("delta").mode("append").save("/lake/loads")
changes = spark.readStream.format("delta").option("readChangeFeed", "true").load("/lake/loads")
(
    changes.select("`load-id`", "payload.`from-port`", "_change_type")
    .writeStream.format("delta")
    .option("checkpointLocation", "/lake/_changes")
    .start("/lake/changes")
    .awaitTermination()
)
