# judged: 2 of 2
import sys

from pyspark.sql import SparkSession

source, first, second = sys.argv[1:4]  # info: [MS114]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("id INT").parquet(source)
rows.writeStream.format("parquet").option("checkpointLocation", first).start(f"{second}/a")
rows.writeStream.format("parquet").option("checkpointLocation", second).start(f"{second}/b")
spark.streams.awaitAnyTermination()
