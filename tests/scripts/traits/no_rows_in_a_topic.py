# judged: 1 of 1
"""Start the query only if a topic, read once, has rows."""

from pyspark.sql import SparkSession


def main():
    spark = SparkSession.builder.getOrCreate()
    berths = spark.read.format("kafka").option("subscribe", "berths").option("kafka.bootstrap.servers", "k:9092")
    rows = berths.load().selectExpr("CAST(value AS STRING) AS berth").collect()  # info: [MS113]
    if len(rows) == 0:
        print("no berths yet")
        return
    names = [row.asDict(recursive=True) for row in rows if row["berth"] == rows[-1]["berth"]]
    spark.sparkContext.broadcast(names)
    rates = spark.readStream.format("rate").load()
    rates.groupBy("value").count().writeStream.format("console").start().awaitTermination()  # error: [MS201]


if __name__ == "__main__":
    main()
