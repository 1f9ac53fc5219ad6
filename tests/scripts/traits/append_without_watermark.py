# judged: 2 of 2
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.readStream.schema("page STRING, at TIMESTAMP").json("in/views").createOrReplaceTempView("views")
for column in ("page", "date(at) AS day"):
    counts = spark.sql(f"SELECT {column}, count(*) AS n FROM views GROUP BY 1")  # error: [MS201] # warning: [MS213]
    counts.writeStream.outputMode("append").format("console").start()
spark.streams.awaitAnyTermination()
