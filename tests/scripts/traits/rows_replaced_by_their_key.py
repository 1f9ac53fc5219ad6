# judged: 2 of 2
"""Two clients replace a row by its key in append mode, and another one adds it."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
ticks = spark.readStream.format("rate").load()
settings = {"es.resource": "ticks", "es.mapping.id": "value"}


def index(batch, batch_id):
    batch.persist()
    batch.write.format("org.elasticsearch.spark.sql").option("es.resource", "ticks").option(
        "es.mapping.id", "value"
    ).option("es.write.operation", "upsert").mode("append").save()
    batch.write.format("es").options(**settings).mode("append").save()
    batch.write.format("mongodb").option("idFieldList", "value").mode("append").save()
    batch.unpersist()


def add(batch, batch_id):
    batch.write.format("mongodb").option("collection", "ticks").mode("append").save()  # warning: [MS341]


ticks.writeStream.foreachBatch(index).option("checkpointLocation", "/data/checkpoints/a").start()
ticks.writeStream.foreachBatch(add).option("checkpointLocation", "/data/checkpoints/b").start()
spark.streams.awaitAnyTermination()
