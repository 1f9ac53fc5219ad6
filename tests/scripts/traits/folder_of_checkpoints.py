# judged: 3 of 3
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.sql.streaming.checkpointLocation", "/lake/state").getOrCreate()
ticks = spark.readStream.format("rate").load()
ticks.writeStream.format("parquet").start("/lake/ticks")  # warning: [MS116]
ticks.writeStream.foreachBatch(lambda batch, number: batch.show()).start()  # warning: [MS116]
ticks.writeStream.queryName("named").format("parquet").start("/lake/named")
spark.streams.awaitAnyTermination()
