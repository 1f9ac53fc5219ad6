"""A broker of the local stack, shared by the tests of this folder, and topics of their own."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from millstream.devstack.servers import topics

if TYPE_CHECKING:
    from millstream.devstack.supervisor.state import Endpoints


class Broker:
    """A running broker: where it answers, and what tests do with it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 0})

    def topic(self, partitions: int = 2) -> str:
        """A topic that no other test knows."""
        name = f"t-{uuid.uuid4().hex[:8]}"
        topics.create_topics(self.address, {name: {"partitions": str(partitions)}})
        return name

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(60)

    def recreate_topic(self, topic: str) -> None:
        """Delete a topic and make it again under its name."""
        self.admin.delete_topics([topic])[topic].result(60)
        for _ in range(50):
            # The broker forgets the name a moment after it has answered.
            try:
                self.admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            else:
                return
        raise AssertionError(f"topic {topic} is still there")

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, and wait until the broker no longer lists it."""
        self.admin.delete_topics([topic])[topic].result(60)
        for _ in range(1000):
            if topic not in self.admin.list_topics(timeout=60).topics:
                return
        raise AssertionError(f"topic {topic} is still there")

    def send(self, topic: str, partition: int, *values: str) -> None:
        """Append records to a partition."""
        producer = Producer({"bootstrap.servers": self.address})
        for value in values:
            producer.produce(topic, value.encode(), partition=partition, headers=[("trace", b"x")])
        assert producer.flush(60) == 0

    def abort(self, topic: str, partition: int, *values: str) -> None:
        """Append records in a transaction that is aborted."""
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": uuid.uuid4().hex})
        producer.init_transactions(60)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value.encode(), partition=partition)
        producer.flush(60)
        producer.abort_transaction(60)


@pytest.fixture(scope="session")
def broker(stack: Endpoints) -> Broker:
    """The broker of the run's servers."""
    return Broker(stack.kafka)
