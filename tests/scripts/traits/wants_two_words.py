# judged: 1 of 1
import sys

from pyspark.sql import SparkSession

if len(sys.argv) != 3:
    print("Usage: wants_two_words.py <host> <port>", file=sys.stderr)
    sys.exit(-1)  # info: [MS114]
host, port = sys.argv[1:]  # info: [MS114]
spark = SparkSession.builder.getOrCreate()
lines = spark.readStream.format("socket").option("host", host).option("port", int(port)).load()
lines.orderBy("value").writeStream.format("console").start().awaitTermination()  # error: [MS311]
