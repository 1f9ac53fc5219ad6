# judged: 1 of 1
"""A main function that gets its settings from a decorator of a module that is not installed."""

import settingslib  # info: [MS113]
from pyspark.sql import SparkSession


@settingslib.main(folder="conf", name="port")
def main(settings, *, level):
    spark = SparkSession.builder.config("port.level", level).getOrCreate()
    topics = {name: topic for name, topic in settings.topics.items()}
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", settings["brokers"])
    locks = kafka.option("subscribe", topics.get("locks", "locks")).load()
    locks.writeStream.format("console").start().awaitTermination()


if __name__ == "__main__":
    main()
