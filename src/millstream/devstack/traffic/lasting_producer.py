"""A Kafka producer that outlives a restart of the broker."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

Report = Callable[[KafkaError | None, Any], None]
"""Receives the delivery of one record: its error, or None, and the message."""

# Seconds in which no record is delivered although some wait, after which the client is replaced.
STALLED = 20.0
# Seconds that a new client may take to reach the broker.
_REACHED = 2.0
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)  # noqa: SLF001 - the names of public codes


class LastingProducer:
    """A producer that is replaced if it does not find its broker again. Used by one thread.

    A broker that is starting may respond that its cluster has no broker. librdkafka 2.12 to 2.16 then forgets the
    brokers and never connects again (its issue 5301). What a client has not delivered is sent by its successor;
    of these records, those whose response was lost are then in the topic twice.
    """

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        self._producer = _connect(kafka)
        self._returned: list[tuple[Any, Report]] = []
        self._last_delivery = time.monotonic()

    def produce(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, report: Report
    ) -> None:
        """Queue a record. Raises `BufferError` if the queue is full."""
        self._producer.produce(topic, value, key, partition, functools.partial(self._take, report))

    def poll(self, timeout: float) -> None:
        """Collect reports, waiting at most `timeout` seconds for the first, and replace a client that is stuck."""
        self._producer.poll(timeout)
        now = time.monotonic()
        if not len(self._producer):
            self._last_delivery = now
        elif now - self._last_delivery > STALLED:
            self._last_delivery = now
            self._replace()

    def flush(self, seconds: float) -> int:
        """Wait until all records are delivered, at most so long, and return how many are not."""
        until = time.monotonic() + seconds
        while len(self._producer) and time.monotonic() < until:
            self.poll(0.1)
        return len(self._producer)

    def _take(self, report: Report, error: KafkaError | None, message: Any) -> None:
        if error is not None and error.code() in _PURGED:
            self._returned.append((message, report))
            return
        if error is None:
            self._last_delivery = time.monotonic()
        report(error, message)

    def _replace(self) -> None:
        """Send what is not delivered by a new client, if that one reaches the broker; if not, the broker is away."""
        successor = _connect(self._kafka)
        try:
            successor.list_topics(timeout=_REACHED)
        except KafkaException:
            return
        self._producer.purge()
        self._producer.flush(_REACHED)
        self._producer = successor
        returned, self._returned = self._returned, []
        for message, report in returned:
            self.produce(message.topic(), message.value(), message.key(), message.partition(), report)


def _connect(kafka: str) -> Producer:
    # Idempotent, so that a retry after a lost response does not duplicate a record, and the order in a partition is
    # kept. Intentional duplicates are counted.
    settings = {
        "bootstrap.servers": kafka,
        "enable.idempotence": True,
        "linger.ms": 20,
        "compression.type": "lz4",
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 262_144,
        "log_level": 0,
    }
    return Producer(settings, error_cb=_ignore)


def _ignore(error: object) -> None:
    """Ignore errors: the producer waits for an unreachable broker, and undelivered records are counted."""
