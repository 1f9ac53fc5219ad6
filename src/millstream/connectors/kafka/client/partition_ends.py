"""Read the end offsets of a topic's partitions, committed or including open transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from millstream.connectors.kafka.client.admin import PATIENCE, create_client
from millstream.diagnostics.failure import Outage

if TYPE_CHECKING:
    from collections.abc import Mapping

# Seconds. After a commit, its markers reach the partitions within milliseconds on a quiet broker.
_SETTLES = 10.0


def read_end_offsets(
    native: Mapping[str, object], topic: str, isolation: str = "read_uncommitted"
) -> dict[int, int]:
    """Return the end offset of each partition, including records of open transactions.

    At `read_committed`, return the offset where such a reader stops: before the first record of an open transaction,
    even if later ones are committed. Raises `KafkaException` if the broker does not respond, and
    `Unreachable` if no client can be created.
    """
    settings = {**native, "group.id": "millstream-ends", "isolation.level": isolation}
    consumer = create_client(Consumer, settings)
    try:
        partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        return {
            number: consumer.get_watermark_offsets(
                TopicPartition(topic, number), timeout=PATIENCE, cached=False
            )[1]
            for number in sorted(partitions)
        }
    finally:
        consumer.close()


def wait_for_commits(native: Mapping[str, object], topic: str) -> None:
    """Wait until a reader of committed records sees all records of a topic.

    A commit is acknowledged before its markers are in the partitions, so that an immediate read may miss committed
    records. Raises `Outage` if a transaction stays open or no broker responds.
    """
    deadline = time.monotonic() + _SETTLES
    try:
        full_ends = read_end_offsets(native, topic)
        while any(
            visible_end < full_ends[number]
            for number, visible_end in read_end_offsets(native, topic, "read_committed").items()
        ):
            if time.monotonic() > deadline:
                raise Outage(
                    f"a transaction in topic '{topic}' has been open for {_SETTLES:.0f} s",
                    "wait until the transaction ends or times out, then try again",
                )
    except KafkaException as cause:
        reason = cause.args[0].str()
        raise Outage(
            f"topic '{topic}' cannot be read: {reason}", "check that the broker is running"
        ) from cause
