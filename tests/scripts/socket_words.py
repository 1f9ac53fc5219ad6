"""The word count of Spark's own guide, with arguments; run as: socket_words.py HOST PORT."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import explode, split

if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("Usage: socket_words.py <hostname> <port>", file=sys.stderr)
        sys.exit(-1)
    host, port = sys.argv[1], int(sys.argv[2])

    spark = SparkSession.builder.appName("StructuredNetworkWordCount").getOrCreate()

    lines = spark.readStream.format("socket").option("host", host).option("port", port).load()
    words = lines.select(explode(split(lines.value, " ")).alias("word"))
    counts = words.groupBy("word").count()  # error: [MS201]

    query = counts.writeStream.outputMode("append").format("console").start()
    query.awaitTermination()
