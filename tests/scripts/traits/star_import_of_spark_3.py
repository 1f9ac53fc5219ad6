# judged: 1 of 1
# Under Spark 3, `import *` also imports the functions whose names are in camel case, and what the module imports for
# itself. A batch uses some of them too.
from pyspark.sql import SparkSession
from pyspark.sql.functions import *  # noqa: F403

spark = (
    SparkSession.builder.appName("ships")
    .config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1")
    .getOrCreate()
)
schema = StructType().add("ship", StringType()).add("course", "double")  # noqa: F405
courses = spark.readStream.schema(schema).json("/landing/courses")


def store(batch: DataFrame, batch_id: Optional[int]):  # noqa: F405
    limit = float(np.sqrt(100))  # noqa: F405
    ships = batch.where(col("degrees") < limit).agg(countDistinct("ship").alias("ships"))  # noqa: F405
    ships.write.mode("overwrite").parquet(f"/lake/ships/batch={batch_id}")


degrees = courses.select("ship", toDegrees("course").alias("degrees"))  # noqa: F405
query = degrees.writeStream.foreachBatch(store).option("checkpointLocation", "/lake/checkpoints/ships").start()
query.awaitTermination()
