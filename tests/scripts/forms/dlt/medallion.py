import dlt
from pyspark.sql import functions as F


@dlt.table(comment="as they come")
@dlt.expect_or_drop("has a user", "user IS NOT NULL")
def bronze():
    return spark.readStream.format("cloudFiles").schema("user STRING, ts TIMESTAMP").load("/mnt/landing")


@dlt.table(name="silver")
def cleaned():
    return dlt.read_stream("bronze").withColumn("day", F.to_date("ts")).groupBy("user").count()


@dlt.table
def gold():
    return spark.table("LIVE.silver").groupBy("user").sum("count")
