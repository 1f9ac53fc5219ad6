"""Which records, from a checkpoint's offsets on, a broker has deleted already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.kafka.ask import connect, ends_of
from millstream.connectors.source import Gap
from millstream.diagnostics.failure import Unfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.kafka.broker import Broker
    from millstream.connectors.kafka.source import KafkaSource


def gaps(broker: Broker, start: Mapping[str, Mapping[str, int]]) -> list[Gap]:
    """A gap for each partition whose next offset, by topic and partition, is below its oldest record.

    Raises `Unfit` for an offset behind the partition's end, `Silent` when the broker does not tell its ends.
    """
    ends = ends_of(connect(broker), {topic: {int(part) for part in parts} for topic, parts in start.items()})
    found = []
    for topic, parts in start.items():
        for part, offset in parts.items():
            end = ends[topic][int(part)]
            if offset > end.high:
                raise Unfit(
                    f"its checkpoint goes on at offset {offset} of partition {part} of topic '{topic}', which ends "
                    f"at {end.high}: the topic is another one, or has lost its newest records",
                    "start with an empty checkpoint folder and emptied sinks",
                )
            if offset < end.low:
                found.append(Gap(topic, int(part), offset, end.low))
    return found


def forgotten(source: KafkaSource) -> list[Gap]:
    """The records below the oldest offset of each partition that it reads. Raises `NotReady` when nobody answers."""
    told = source.probe()
    counts = {key.partition(".")[2]: int(many) for key, many in told.items() if key.startswith("partitions.")}
    return gaps(source, {topic: dict.fromkeys(map(str, range(many)), 0) for topic, many in counts.items()})
