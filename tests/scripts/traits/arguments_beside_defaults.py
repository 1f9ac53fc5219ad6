# judged: 1 of 1
import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

parser = argparse.ArgumentParser()
parser.add_argument("source")
parser.add_argument("--target", required=True)
# A folder for temporary files, which MS403 is about; the command line of the test names another.
parser.add_argument("--state", default="/tmp/job/state")
parser.add_argument("--lateness", default="10 minutes")
args = parser.parse_args()  # info: [MS114]
spark = SparkSession.builder.getOrCreate()
readings = spark.readStream.schema("id STRING, at TIMESTAMP, watts DOUBLE").parquet(args.source)
hours = readings.withWatermark("at", args.lateness).groupBy(F.window("at", "1 hour"), "id").sum("watts")
hours.writeStream.format("parquet").option("checkpointLocation", args.state).start(  # warning: [MS403]
    args.target
).awaitTermination()
