# judged: 1 of 1
"""The session of a cloud's library, which is made from Spark's context."""

import sys

from awsglue.context import GlueContext  # info: [MS113]
from awsglue.job import Job
from pyspark.context import SparkContext

context = GlueContext(SparkContext())
spark = context.spark_session
job = Job(context)
job.init("clicks", {})

rows = spark.readStream.format("rate").load()
rows.orderBy("value").writeStream.format("console").start().awaitTermination()  # error: [MS311]
job.commit()
