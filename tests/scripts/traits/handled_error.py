# judged: no
# The script catches Spark's refusal, prints it, and runs nothing.
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("clicks").getOrCreate()
try:
    clicks = spark.readStream.schema("user STRING, at TIMESTAMP").json("/landing/clicks")
    hourly = clicks.groupBy(F.window("at", "1 hour")).agg(F.hour("at").alias("hour"))  # error: [MS114]
    hourly.writeStream.format("console").start().awaitTermination()
except Exception as error:
    print(f"failed: {error}")
finally:
    spark.stop()
