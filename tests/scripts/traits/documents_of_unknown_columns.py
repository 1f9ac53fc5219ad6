# judged: 3 of 3
"""MongoDB and Elasticsearch store documents with any fields, so nothing depends on columns that are not known."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("lamps").getOrCreate()
lamps = spark.readStream.table("city.lamps").drop("note")  # info: [MS113]
for sink in ("mongodb", "es", "org.elasticsearch.spark.sql"):
    lamps.writeStream.format(sink).option("checkpointLocation", f"/lake/cp/{sink}").start()
spark.streams.awaitAnyTermination()
