# judged: 1 of 1
"""A function for rows that is a method of the job: Spark pickles the whole class with it."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import broadcast, col, from_json, udf, window
from pyspark.sql.types import DoubleType


class Job:
    WORDS = {"good", "great"}

    def __init__(self):
        self.spark = SparkSession.builder.getOrCreate()

    @staticmethod
    def score(text):
        return float(len(set((text or "").split()) & Job.WORDS))

    def read(self, topic):
        raw = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
        rows = raw.option("subscribe", topic).load()
        decoded = from_json(col("value").cast("string"), "text STRING, at TIMESTAMP")
        return rows.select(decoded.alias("m")).select("m.*").withWatermark("at", "1 minute")  # warning: [MS553]

    def with_names(self, rows, names):
        return rows.join(broadcast(names), "text")

    def run(self):
        scored = self.read("chat").withColumn("score", udf(self.score, DoubleType())(col("text")))
        counts = scored.groupBy(window("at", "1 minute")).avg("score")
        query = counts.writeStream.format("delta").option("checkpointLocation", "/data/chat")
        query.start("/data/scores").awaitTermination()


Job().run()
