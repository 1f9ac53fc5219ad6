# judged: 2 of 2
import os

from fleetsettings import options_of_the_job  # info: [MS113]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

options = options_of_the_job(["LATENESS", "SIZE", "PAUSE", "EVERY"])
minutes = os.environ["MINUTES_OF_NOBODY"]  # info: [MS113]
spark = SparkSession.builder.getOrCreate()
stops = spark.readStream.schema("bus INT, at TIMESTAMP").json("/landing/stops")
counts = (
    stops.withWatermark("at", options["LATENESS"])
    .groupBy(F.window("at", options["SIZE"], slideDuration=f"{minutes} minutes"), "bus")
    .count()
)
counts.writeStream.format("parquet").trigger(processingTime=options["EVERY"]).option(
    "checkpointLocation", "/lake/state/counts"
).start("/lake/counts")
trips = (
    stops.withWatermark("at", f"{minutes} minutes")
    .groupBy(F.session_window("at", options["PAUSE"]), "bus")
    .count()
)
trips.writeStream.format("parquet").trigger(availableNow=options["ONCE"]).option(
    "checkpointLocation", "/lake/state/trips"
).start("/lake/trips")  # warning: [MS207]
spark.streams.awaitAnyTermination()
