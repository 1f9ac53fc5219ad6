"""Describe an offset range in words, and split it in half, down to one record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.connectors.api.values.offsets import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Mapping

# Offset for the oldest record in the offsets given to Spark.
_OLDEST = -2
_Part = tuple[str, str, int, int]
"""Topic, partition, first offset, and the offset after the last."""


def split_offsets(
    start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
) -> tuple[OffsetRange, OffsetRange] | None:
    """Split the partitions with records, or the offsets of the only one; None for a single offset."""
    parts = _parts(start, end)
    if len(parts) > 1:
        middle = len(parts) // 2
        return _range(parts[:middle]), _range(parts[middle:])
    if not parts:
        return None
    topic, part, first, last = parts[0]
    # An unknown offset is negative; the records may then start at any offset from 0.
    lowest = max(first, 0)
    if last - lowest < 2:
        return None
    split_offset = (lowest + last) // 2
    return _range([(topic, part, first, split_offset)]), _range([(topic, part, split_offset, last)])


def describe_offsets(
    start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Describe each partition with records: `partition 0 of topic 'clicks', offsets 100 to 199`."""
    return [
        f"partition {part} of topic '{topic}', offset{_format_offsets(first, last - 1)}"
        for topic, part, first, last in _parts(start, end)
    ]


def _parts(start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]) -> list[_Part]:
    """Return the partitions with records."""
    return [
        (topic, part, start[topic][part], last)
        for topic, end_offsets in end.items()
        for part, last in end_offsets.items()
        if start[topic][part] < last and last > 0
    ]


def _format_offsets(first: int, last: int) -> str:
    """Return the text after the word `offset`: ` 7`, `s 7 to 9`, or `s from its oldest to 9`."""
    if first == last:
        return f" {last}"
    # A negative offset, -2, is Spark's value for the oldest record.
    return f"s {'from its oldest' if first < 0 else first} to {last}"


def _range(parts: list[_Part]) -> OffsetRange:
    """Return the offset range of these partitions."""
    start: dict[str, dict[str, int]] = {}
    end: dict[str, dict[str, int]] = {}
    for topic, part, first, last in parts:
        start.setdefault(topic, {})[part] = first
        end.setdefault(topic, {})[part] = last
    return OffsetRange(json.dumps(start), json.dumps(end))


def offset_bounds(offsets: OffsetRange) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Return start and end of a batch for the same partitions, as a static Spark read requires."""
    end: dict[str, dict[str, int]] = json.loads(offsets.end)
    # Spark writes the offsets before a query's first batch as null.
    recorded: dict[str, dict[str, int]] = json.loads(offsets.start or "null") or {}
    start = {
        topic: {part: recorded.get(topic, {}).get(part, _OLDEST) for part in parts}
        for topic, parts in end.items()
    }
    return start, end
