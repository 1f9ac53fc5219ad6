"""A range of offsets in words, and in two halves, down to one record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.connectors.source import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Mapping

# Kafka's own number for "the oldest record there is" in offsets given to Spark.
_OLDEST = -2
_Part = tuple[str, str, int, int]
"""A topic, a partition, its first offset and the one after its last."""


def halves(
    start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
) -> tuple[OffsetRange, OffsetRange] | None:
    """Half of the partitions with records, or of the offsets of the only one; None for one offset."""
    parts = _parts(start, end)
    if len(parts) > 1:
        middle = len(parts) // 2
        return _range(parts[:middle]), _range(parts[middle:])
    if not parts:
        return None
    topic, part, first, last = parts[0]
    # An offset that is not known is negative; the records may begin anywhere from 0 on.
    known = max(first, 0)
    if last - known < 2:
        return None
    cut = (known + last) // 2
    return _range([(topic, part, first, cut)]), _range([(topic, part, cut, last)])


def pieces(start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]) -> list[str]:
    """`partition 0 of topic 'clicks', offsets 100 to 199` for each partition with records."""
    return [
        f"partition {part} of topic '{topic}', offset{_between(first, last - 1)}"
        for topic, part, first, last in _parts(start, end)
    ]


def _parts(start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]) -> list[_Part]:
    """The partitions with records."""
    return [
        (topic, part, start[topic][part], last)
        for topic, lasts in end.items()
        for part, last in lasts.items()
        if start[topic][part] < last and last > 0
    ]


def _between(first: int, last: int) -> str:
    """` 7`, `s 7 to 9`, `s from its oldest to 9`: what stands behind the word offset."""
    if first == last:
        return f" {last}"
    # Spark's word for the oldest that there is, -2.
    return f"s {'from its oldest' if first < 0 else first} to {last}"


def _range(parts: list[_Part]) -> OffsetRange:
    """The range of these partitions alone."""
    start: dict[str, dict[str, int]] = {}
    end: dict[str, dict[str, int]] = {}
    for topic, part, first, last in parts:
        start.setdefault(topic, {})[part] = first
        end.setdefault(topic, {})[part] = last
    return OffsetRange(json.dumps(start), json.dumps(end))


def bounds(offsets: OffsetRange) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Start and end of one batch for the same partitions, as a static read of Spark asks for them."""
    end: dict[str, dict[str, int]] = json.loads(offsets.end)
    # Spark writes the offsets before a query's first batch as null.
    known: dict[str, dict[str, int]] = json.loads(offsets.start or "null") or {}
    start = {
        topic: {part: known.get(topic, {}).get(part, _OLDEST) for part in parts}
        for topic, parts in end.items()
    }
    return start, end
