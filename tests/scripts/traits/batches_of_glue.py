# judged: 2 of 2
"""AWS Glue starts a query itself, and persists each of its batches."""

import sys

from awsglue.context import GlueContext  # info: [MS113]
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME"])
glueContext = GlueContext(SparkContext())
clicks = glueContext.create_data_frame.from_options(connection_type="kinesis", connection_options={})
options = {"windowSize": "100 seconds", "checkpointLocation": args["TempDir"] + "/checkpoint"}


def store(batch, number):
    if batch.count() > 0:
        try:
            batch.write.mode("overwrite").parquet(f"s3a://lake/clicks/{number}")
        except Exception as error:  # error: [MS340]
            print(error)


def once(batch, number):
    if batch.count() > 0:
        batch.write.mode("overwrite").parquet("s3a://lake/rates")  # warning: [MS342]


glueContext.forEachBatch(frame=clicks, batch_function=store, options=options)  # error: [MS119]
rates = glueContext.spark_session.readStream.format("rate").load()
glueContext.forEachBatch(rates, once, {**options, "persistDataFrame": "false"})
