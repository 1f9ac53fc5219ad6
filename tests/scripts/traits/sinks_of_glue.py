# judged: 1 of 1
"""A batch that AWS Glue's own sinks append."""

import sys

from awsglue.context import GlueContext  # info: [MS113]
from awsglue.dynamicframe import DynamicFrame
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME"])
glueContext = GlueContext(SparkContext())
rates = glueContext.spark_session.readStream.format("rate").load()


def store(batch, number):
    if batch.count() > 0:
        frame = DynamicFrame.fromDF(batch, glueContext, "frame")
        glueContext.write_dynamic_frame.from_options(  # warning: [MS341]
            frame=frame, connection_type="s3", connection_options={"path": "s3://lake/rates"}, format="parquet"
        )


glueContext.forEachBatch(rates, store, {"windowSize": "100 seconds", "checkpointLocation": "s3://lake/_rates"})
