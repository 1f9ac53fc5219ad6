# judged: 1 of 1
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
shown = spark.readStream.schema("ad INT, shown_at TIMESTAMP").json("in/shown")
clicked = spark.readStream.schema("clicked_ad INT, clicked_at TIMESTAMP").json("in/clicked")
joined = shown.join(clicked, F.expr("ad = clicked_ad"))  # error: [MS209]
joined.writeStream.format("console").start().awaitTermination()
