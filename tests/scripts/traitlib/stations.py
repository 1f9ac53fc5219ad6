from servers import connect


class StationStream:
    """A stream that starts only with a connection to a database."""

    def __init__(self, spark):
        self.spark = spark

    def connection(self):
        try:
            return connect("stations")
        except Exception:
            return None

    def run(self):
        if self.connection():
            rates = self.spark.readStream.format("rate").load()
            rates.writeStream.format("console").start().awaitTermination()
