# judged: 1 of 1
from pyspark.sql import SparkSession
from traitlib.stations import StationStream

StationStream(SparkSession.builder.getOrCreate()).run()
