# judged: 1 of 1
"""Clients of Kafka beside a stream: a check opens none of them."""

import json

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

SERVERS = {"bootstrap.servers": "localhost:9092"}


class Alerts(Producer):
    def send(self, alert):
        self.produce("alerts", json.dumps(alert).encode())
        self.flush()


for name, future in AdminClient(SERVERS).create_topics([NewTopic("alerts", 1, 1)]).items():  # info: [MS113]
    future.result()
Alerts(SERVERS).send({"port": "Hull"})  # info: [MS113]
consumer = Consumer(SERVERS | {"group.id": "ports"})  # info: [MS113]
consumer.subscribe(["alerts"])
message = consumer.poll(1.0)
if message is not None and not message.error():
    print(message.value())
rates = SparkSession.builder.getOrCreate().readStream.format("rate").load()
rates.writeStream.format("console").start().awaitTermination()
