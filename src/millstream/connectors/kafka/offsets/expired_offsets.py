"""Find records after a checkpoint's offsets that the broker has already deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.values.offsets import OffsetGap
from millstream.connectors.kafka.connectivity import connect_admin, read_partition_ends
from millstream.diagnostics.failure import CheckpointMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.kafka.client.broker import Broker
    from millstream.connectors.kafka.source import KafkaSource


def find_gaps(broker: Broker, start: Mapping[str, Mapping[str, int]]) -> list[OffsetGap]:
    """Return a gap for each partition whose next offset is below its oldest record.

    `start` contains offsets by topic and partition. Raises `CheckpointMismatch` for an offset beyond the partition's
    end, `Unreachable` if the broker does not return its offsets.
    """
    ends = read_partition_ends(
        connect_admin(broker), {topic: {int(part) for part in parts} for topic, parts in start.items()}
    )
    gaps = []
    for topic, parts in start.items():
        for part, offset in parts.items():
            end = ends[topic][int(part)]
            if offset > end.high:
                raise CheckpointMismatch(
                    f"its checkpoint continues at offset {offset} of partition {part} of topic '{topic}', but the "
                    f"partition ends at {end.high}: the topic was recreated, or has lost its newest records",
                    "start with an empty checkpoint folder and emptied sinks",
                )
            if offset < end.low:
                gaps.append(OffsetGap(topic, int(part), offset, end.low))
    return gaps


def find_expired_offsets(source: KafkaSource) -> list[OffsetGap]:
    """Return the offsets below each partition's oldest record. Raises `NotReady` if no broker responds."""
    probed = source.probe()
    counts = {
        key.partition(".")[2]: int(count) for key, count in probed.items() if key.startswith("partitions.")
    }
    return find_gaps(
        source, {topic: dict.fromkeys(map(str, range(count)), 0) for topic, count in counts.items()}
    )
