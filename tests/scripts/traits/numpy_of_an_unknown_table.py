# judged: 1 of 1
"""The highest value of a table that is not known is printed, which finds none."""

import numpy as np
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
fares = spark.table("lake.past_fares").toPandas()  # info: [MS113]
print(np.max(fares.to_numpy()))  # info: [MS114]
rates = spark.readStream.format("rate").load()
rates.writeStream.format("console").start().awaitTermination()
