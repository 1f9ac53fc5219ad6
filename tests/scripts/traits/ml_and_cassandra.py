# judged: 1 of 1
from pyspark.ml.feature import StringIndexerModel, Tokenizer
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
lines = spark.readStream.schema("word STRING, text STRING").json("s3a://landing/text")
words = Tokenizer(inputCol="text", outputCol="words").transform(lines)
indexed = StringIndexerModel.from_labels(["a", "b"], inputCol="word", outputCol="number").transform(words)


def save(batch, _number):
    batch.write.format("org.apache.spark.sql.cassandra").mode("append").options(
        table="t", keyspace="k"
    ).save()


writer = indexed.writeStream.foreachBatch(save).option("checkpointLocation", "s3a://cp/ml")
writer.start().awaitTermination()
