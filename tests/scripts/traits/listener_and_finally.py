# judged: 1 of 1
import logging

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

logging.basicConfig(level=logging.INFO)
log = logging.getLogger(__name__)


class Progress(StreamingQueryListener):
    def onQueryStarted(self, event):
        log.info("started %s", event.id)

    def onQueryProgress(self, event):
        log.info("%s rows", event.progress.numInputRows)

    def onQueryTerminated(self, event):
        log.info("ended %s", event.id)


spark = SparkSession.builder.getOrCreate()
spark.streams.addListener(Progress())
query = spark.readStream.format("rate").load().writeStream.format("console").start()
try:
    while query.isActive:
        query.awaitTermination(10)
except KeyboardInterrupt:
    log.info("stopping")
finally:
    query.stop()
    spark.stop()
