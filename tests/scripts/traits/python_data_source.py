# judged: 1 of 1
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource


class Weather(DataSource):
    @classmethod
    def name(cls):
        return "weather"

    def schema(self):
        return "station STRING, degrees DOUBLE"


spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(Weather)
weather = spark.readStream.format("weather").load()
weather.groupBy("station").avg("degrees").writeStream.outputMode("update").format(  # warning: [MS202]
    "console"
).start().awaitTermination()
