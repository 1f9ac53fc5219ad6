# judged: 1 of 1
# Under Spark 3, `import *` also imports the functions whose names are in camel case. A batch uses one of them too.
from pyspark.sql import SparkSession
from pyspark.sql.functions import *  # noqa: F403
from pyspark.sql.functions import DataFrame

spark = (
    SparkSession.builder.appName("ships")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1")
    .getOrCreate()
)
courses = spark.readStream.schema("ship STRING, course DOUBLE").json("/landing/courses")


def store(batch: DataFrame, batch_id):
    ships = batch.agg(countDistinct("ship").alias("ships"))  # noqa: F405
    ships.write.mode("overwrite").parquet(f"/lake/ships/batch={batch_id}")


degrees = courses.select("ship", toDegrees("course").alias("degrees"))  # noqa: F405
query = degrees.writeStream.foreachBatch(store).option("checkpointLocation", "/lake/checkpoints/ships").start()
query.awaitTermination()
