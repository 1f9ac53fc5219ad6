"""Find records after a checkpoint's offsets that the broker has already deleted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.connectors.api.values.offsets import OffsetGap
from millstream.connectors.kafka.connectivity import connect_admin, list_partitions, read_partition_ends
from millstream.diagnostics.failure import CheckpointMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.kafka.source import KafkaSource


def find_gaps(source: KafkaSource, start: Mapping[str, Mapping[str, int]]) -> list[OffsetGap]:
    """Return a gap for each partition whose next offset is below its oldest record, or that no longer exists.

    `start` contains offsets by topic and partition. A partition of the source that is not in `start` is new, and is
    read from offset 0. Raises `CheckpointMismatch` for an offset beyond the partition's end, `Unreachable` if the
    broker does not return its offsets.
    """
    client = connect_admin(source)
    existing = list_partitions(client, {*start, *source.topics})
    begins = {
        (topic, part): 0 for topic, parts in existing.items() for part in parts if _reads(source, topic, part)
    }
    begins |= {(topic, int(part)): offset for topic, parts in start.items() for part, offset in parts.items()}
    remaining: dict[str, set[int]] = {}
    for topic, part in begins:
        if part in existing.get(topic, ()):
            remaining.setdefault(topic, set()).add(part)
    ends = read_partition_ends(client, remaining)
    gaps = []
    for (topic, part), offset in begins.items():
        end = ends.get(topic, {}).get(part)
        if end is None:
            gaps.append(OffsetGap(topic, part, offset, offset))
            continue
        if offset > end.high:
            raise CheckpointMismatch(
                f"its checkpoint continues at offset {offset} of partition {part} of topic '{topic}', but the "
                f"partition ends at {end.high}: the topic was recreated, or has lost its newest records",
                "start with an empty checkpoint folder and emptied sinks",
            )
        if offset < end.low:
            gaps.append(OffsetGap(topic, part, offset, end.low))
    return gaps


def find_expired_offsets(source: KafkaSource) -> list[OffsetGap]:
    """Return the offsets below each partition's oldest record. Raises `NotReady` if no broker responds."""
    source.probe()
    return find_gaps(source, {})


def _reads(source: KafkaSource, topic: str, partition: int) -> bool:
    """Return whether a source reads an existing partition."""
    if source.assign:
        return partition in source.assign.get(topic, ())
    pattern = source.subscribe_pattern
    return topic in source.subscribe or (pattern is not None and re.fullmatch(pattern, topic) is not None)
