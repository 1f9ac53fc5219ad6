"""Offsets of a source: what a batch read, what is gone, how a batch is limited."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol


class EndOffsets(Protocol):
    """Reads where a source ends now. Used by one thread."""

    def read(self) -> dict[str, dict[int, int]]:
        """Return the offset after the newest record of each partition, by topic. Raises `Unreachable`."""


@dataclass(frozen=True)
class OffsetRange:
    """Offsets that one batch read from one source, in Spark's offset JSON: from `start` to before `end`.

    `start` is None if the checkpoint does not have the start of the first batch. `files` are the paths that the batch
    read, for file sources.
    """

    start: str | None
    end: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class StartPosition:
    """Where a source begins in a fresh checkpoint: after an offset, or after the files that were read already.

    `offset` is Spark's JSON. `files` has the path and the time of change of each file, in milliseconds since 1970.
    """

    offset: str | None = None
    files: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class StartFiles:
    """Contents of a fresh checkpoint for one source: its log's first entry, and where an empty batch 0 ends."""

    log: str
    offset: str


@dataclass(frozen=True)
class OffsetGap:
    """Records that a checkpoint has not read yet but the source no longer has: `start` to before `end`.

    If the whole partition is gone, it is unknown how many records it had, and `end` is `start`.
    """

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        if self.end == self.start:
            return (
                f"partition {self.partition} of topic '{self.topic}', which the query has read up to offset "
                f"{self.start}, no longer exists"
            )
        count = self.end - self.start
        return (
            f"partition {self.partition} of topic '{self.topic}' has no offsets {self.start} to "
            f"{self.end - 1} any more: {count:,} record{'' if count == 1 else 's'}"
        )

    def is_passed_by(self, offsets: str | None) -> bool:
        """Return whether a query with these newest offsets, in Spark's JSON, has passed the gap."""
        newest = json.loads(offsets or "null") or {}
        return int(newest.get(self.topic, {}).get(str(self.partition), self.end)) >= self.end


@dataclass(frozen=True)
class BatchLimit:
    """Suggested setting to limit the size of a batch: its field and a first value.

    `first_batch` describes the first batch without it: `all records of topic 'orders'`. `causes` are the fields that
    determine the first batch, if they are set.
    """

    field: str
    value: int
    first_batch: str
    causes: tuple[str, ...] = ()
