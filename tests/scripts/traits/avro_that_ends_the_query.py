# judged: 2 of 2
"""Read Avro messages. An invalid message ends the first query; the second has a permissive from_avro."""

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro

SCHEMA = '{"type": "record", "name": "order", "fields": [{"name": "id", "type": "int"}]}'
spark = SparkSession.builder.getOrCreate()
servers = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "broker:9092")
topic = servers.option("subscribe", "orders").load()
strict = topic.select(from_avro("value", SCHEMA).alias("order"))  # warning: [MS553]
strict.writeStream.option("checkpointLocation", "/lake/_a").start("/lake/a")
lenient = topic.select("value", from_avro("value", SCHEMA, {"mode": "PERMISSIVE"}).alias("order"))
lenient.where("order IS NOT NULL").writeStream.option("checkpointLocation", "/lake/_b").start("/lake/b")
spark.streams.awaitAnyTermination()
