"""A client that does not find its broker again is replaced, and no record is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from millstream.devstack.traffic import lasting_producer
from millstream.devstack.traffic.lasting_producer import STALLED, LastingProducer


class Cluster:
    """A broker, and the clients that were made for it. Time passes while a client waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.is_up = True
        self.clients: list[Client] = []

    def connect(self, kafka: str) -> Client:
        assert kafka == "broker:9092"
        self.clients.append(Client(self))
        return self.clients[-1]


class Client:
    """A producer of the library."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.is_stuck = cluster, False
        self.queue: list[tuple[Any, Any]] = []
        self.sent: list[str] = []

    def __len__(self) -> int:
        return len(self.queue)

    def produce(self, topic: str, value: Any, key: Any, partition: int, report: Any) -> None:
        columns = {"topic": topic, "value": value, "key": key, "partition": partition}
        message = SimpleNamespace(**{name: lambda it=it: it for name, it in columns.items()})
        self.queue.append((message, report))

    def poll(self, timeout: float) -> int:
        self.cluster.now += timeout
        if self.is_stuck or not self.cluster.is_up:
            return 1
        while self.queue:
            message, report = self.queue.pop(0)
            self.sent.append(message.value())
            report(None, message)
        return 0

    def list_topics(self, timeout: float) -> None:
        self.cluster.now += timeout
        if not self.cluster.is_up:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def purge(self) -> None:
        for message, report in self.queue:
            report(KafkaError(KafkaError._PURGE_QUEUE), message)
        self.queue = []

    def flush(self, _: float) -> int:
        return len(self.queue)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(lasting_producer.time, "monotonic", lambda: cluster.now)
    monkeypatch.setattr(lasting_producer, "_connect", cluster.connect)
    return cluster


def poll_for(cluster: Cluster, producer: LastingProducer, seconds: float) -> None:
    until = cluster.now + seconds
    while cluster.now < until:
        producer.poll(0.5)


def test_a_stuck_client_is_replaced_and_its_records_are_sent_and_reported_once(cluster: Cluster) -> None:
    reports: list[tuple[KafkaError | None, str]] = []
    producer = LastingProducer("broker:9092")
    cluster.clients[0].is_stuck = True
    for value in "abc":
        producer.produce("t", value, "k", 1, lambda error, message: reports.append((error, message.value())))

    poll_for(cluster, producer, STALLED)
    assert (len(cluster.clients), reports) == (1, [])
    poll_for(cluster, producer, 3)

    assert [client.sent for client in cluster.clients] == [[], ["a", "b", "c"]]
    assert reports == [(None, "a"), (None, "b"), (None, "c")]


def test_a_broker_that_is_away_keeps_its_client(cluster: Cluster) -> None:
    producer = LastingProducer("broker:9092")
    cluster.is_up = False
    producer.produce("t", b"a", None, -1, lambda *_: None)

    poll_for(cluster, producer, 5 * STALLED)
    assert len(cluster.clients[0]) == 1
    cluster.is_up = True

    assert producer.flush(10) == 0
    assert cluster.clients[0].sent == [b"a"]


def test_a_client_that_has_nothing_to_send_is_not_replaced(cluster: Cluster) -> None:
    producer = LastingProducer("broker:9092")

    poll_for(cluster, producer, 5 * STALLED)
    producer.produce("t", b"a", None, -1, lambda *_: None)
    producer.poll(0)

    assert len(cluster.clients) == 1


def test_a_flush_ends_in_time(cluster: Cluster) -> None:
    producer = LastingProducer("broker:9092")
    cluster.is_up = False
    producer.produce("t", b"a", None, -1, lambda *_: None)

    assert producer.flush(60) == 1
    assert 60 <= cluster.now < 70
