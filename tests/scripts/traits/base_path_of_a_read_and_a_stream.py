# judged: 1 of 1
"""Files that are read below a base path, whose folder a check does not write: as a table, and as a stream."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
places = spark.range(5).selectExpr("id", "CAST(id AS STRING) AS day")
places.write.partitionBy("day").mode("overwrite").parquet("places")
known = spark.read.option("basePath", "places/").parquet("places/")
stream = spark.readStream.schema("id BIGINT, day STRING").option("basePath", "in/").parquet("in/day=*")
joined = stream.join(known.withColumnRenamed("day", "of"), "id")
writer = joined.writeStream.format("parquet").option("checkpointLocation", "s3a://lake/cp/a")
writer.start("s3a://lake/a").awaitTermination()
