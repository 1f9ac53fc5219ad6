# judged: 1 of 1
"""A `try` catches that a module is not installed, and the script then needs what it should have imported."""

try:
    import os, driver_of_ports  # info: [MS113]

    from flows_of_ports import BaseFlow, step  # info: [MS113]
    from pyspark.sql import SparkSession
except Exception as error:
    print(f"not installed: {error}")


class PortFlow(BaseFlow):
    @step
    def run(self):
        print(driver_of_ports.name, os.name)


PortFlow().run()
spark = SparkSession.builder.getOrCreate()
spark.readStream.format("rate").load().writeStream.format("console").start().awaitTermination()
