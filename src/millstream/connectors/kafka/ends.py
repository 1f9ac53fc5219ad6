"""Where a topic's partitions end: for whoever reads committed records, and behind transactions that are open."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from millstream.connectors.kafka.admin import PATIENCE, SILENT
from millstream.diagnostics.failure import Outage

if TYPE_CHECKING:
    from collections.abc import Mapping

# A transaction's end reaches its partitions after the producer has its answer: milliseconds on a quiet broker.
_SETTLES = 10.0


def ends(native: Mapping[str, object], topic: str, isolation: str = "read_uncommitted") -> dict[int, int]:
    """The offset after the last record of each partition, those of open transactions counted.

    At `read_committed` the offset where such a reader stops: before the first record of a transaction that is
    open, though later ones may be committed. Raises `KafkaException` when the broker does not answer.
    """
    settings = {**native, "group.id": "millstream-ends", "isolation.level": isolation}
    consumer = Consumer(settings, logger=SILENT)
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


def settle(native: Mapping[str, object], topic: str) -> None:
    """Wait until a reader of committed records sees all that stands in a topic.

    A commit is answered before its markers stand in the partitions, so that who reads at once may miss records
    that are committed. Raises `Outage` when a transaction stays open, or nobody answers.
    """
    until = time.monotonic() + _SETTLES
    try:
        wanted = ends(native, topic)
        while any(seen < wanted[number] for number, seen in ends(native, topic, "read_committed").items()):
            if time.monotonic() > until:
                raise Outage(
                    f"a transaction in topic '{topic}' has been open for {_SETTLES:.0f} s",
                    "it ends by its own timeout; read the topic again then",
                )
    except KafkaException as cause:
        said = cause.args[0].str()
        raise Outage(f"topic '{topic}' cannot be read: {said}", "see that the broker is up") from cause
