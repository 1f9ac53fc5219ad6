# judged: 1 of 1
import pickle

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()

with open("oystercatcher.pkl", "rb") as file:  # info: [MS113]
    model = pickle.load(file)


@F.udf("string")
def classify(call):
    return model.predict([call])[0]


calls = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", "b:9092")
    .option("subscribe", "calls")
    .load()
)
birds = calls.select(classify(F.col("value").cast("string")).alias("bird"))
birds.writeStream.format("console").start().awaitTermination()
