"""Transactional writers for tests, and what a reader of committed records sees."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.kafka.client.partition_ends import wait_for_commits
from millstream.connectors.kafka.sink import KafkaSink
from millstream.connectors.kafka.transactions import TransactionalWriter
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from conftest import Broker


def batch(spark: SparkSession, first: int, rows: int = 100) -> DataFrame:
    """Rows whose ids no other batch has."""
    return spark.range(first, first + rows, numPartitions=2).selectExpr("id", "concat('row ', id) AS text")


def opened(
    spark: SparkSession, broker: Broker, topic: str | None, query_id: str, **settings: Any
) -> TransactionalWriter:
    fields = {"bootstrap_servers": broker.address, "topic": topic, "transactional": True, "key": "id"}
    sink = KafkaSink.model_validate(fields | settings)
    owner = SinkIdentity("shop", "orders", query_id, "kafka:orders", OutputMode.APPEND)
    writer = sink.writer(owner)
    assert isinstance(writer, TransactionalWriter)
    writer.open(spark, batch(spark, 0).schema)
    return writer


def committed(broker: Broker, topic: str, partitions: int = 2) -> list[int]:
    """Keys of the records that a reader of committed records sees, smallest first."""
    return sorted(committed_in_order(broker, topic, partitions))


def committed_in_order(broker: Broker, topic: str, partitions: int = 1) -> list[int]:
    """Keys of the records that a reader of committed records sees, as each partition has them."""
    return [key for key, _ in committed_values(broker, topic, partitions)]


def committed_values(broker: Broker, topic: str, partitions: int) -> list[tuple[int, bytes | None]]:
    """Keys and values of the records that a reader of committed records sees, as each partition has them."""
    wait_for_commits({"bootstrap.servers": broker.address}, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    places = [TopicPartition(topic, number, 0) for number in range(partitions)]
    consumer.assign(places)
    actual, ended = [], 0
    while ended < partitions:
        message = consumer.poll(60)
        assert message is not None, "the broker is silent"
        if message.error() is None:
            actual.append((int(message.key()), message.value()))
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF
            ended += 1
    consumer.close()
    return actual
