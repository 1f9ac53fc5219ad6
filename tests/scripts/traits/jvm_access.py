# judged: 1 of 1
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
sc._jsc.hadoopConfiguration().set("fs.s3a.access.key", "x")
path = sc._jvm.org.apache.hadoop.fs.Path("file:///data/never")
files = path.getFileSystem(sc._jsc.hadoopConfiguration())
if files.exists(path):
    files.delete(path, True)
rates = spark.readStream.format("rate").load()
rates.orderBy("value").writeStream.format("console").start().awaitTermination()  # error: [MS311]
