# judged: 1 of 1
from typing import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

spark = SparkSession.builder.getOrCreate()


@pandas_udf("double")
def scaled(value: pd.Series) -> pd.Series:
    return value / 10


def passing(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame[frame["value"] > 0]


readings = spark.readStream.schema("sensor STRING, value DOUBLE").json("in/readings")
result = readings.mapInPandas(passing, "sensor STRING, value DOUBLE").withColumn("scaled", scaled("value"))
result.writeStream.format("console").start().awaitTermination()
