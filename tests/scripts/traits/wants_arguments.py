# judged: 1 of 1
import argparse

from pyspark.sql import SparkSession

parser = argparse.ArgumentParser()
parser.add_argument("--topic", required=True)
args = parser.parse_args()  # info: [MS114]
spark = SparkSession.builder.appName(args.topic).getOrCreate()
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "broker:9092")
    .option("subscribe", args.topic)
    .load()
)
raw.groupBy("topic").count().writeStream.outputMode("complete").format(  # info: [MS218]
    "console"
).start().awaitTermination()
