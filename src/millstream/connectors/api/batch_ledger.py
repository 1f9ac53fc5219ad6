"""Ledger entries of a sink: the last batch of each writer, with its offsets and its checksum."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


BACKFILL = "backfill-"
"""Prefix of a backfill writer's id, which belongs to no checkpoint."""


@dataclass(frozen=True)
class BatchMetadata:
    """Metadata that is written with a batch; each part is None if it is unknown.

    `offsets` contains the end of the batch in each source, in the order of the plan: Spark's JSON, None for a source
    without data yet. `planned` is the time when Spark planned it, in milliseconds since 1970. Two plans with the same
    number differ in it even if offsets are plain counters, as those of files are. `content` is the number of rows and
    a sum over them, independent of their order: `count:sum`.
    """

    offsets: tuple[str | None, ...] | None = None
    planned: int | None = None
    content: str | None = None

    def plain(self) -> dict[str, Any]:
        """Convert to a dict for JSON, without unknown parts."""
        parts = {"offsets": self.offsets, "planned": self.planned, "content": self.content}
        return {name: value for name, value in parts.items() if value is not None}

    @property
    def is_known(self) -> bool:
        """Whether the plan's offsets or time are known."""
        return self.offsets is not None or self.planned is not None

    def contradicts(self, other: BatchMetadata) -> bool:
        """Return whether the two batches were planned separately; False if that is unknown."""
        if None not in (self.planned, other.planned) and self.planned != other.planned:
            return True
        if self.offsets is None or other.offsets is None:
            return False
        return _parse_offsets(self.offsets) != _parse_offsets(other.offsets)


UNTOLD = BatchMetadata()
"""Metadata of a batch about which nothing is known."""


def no_metadata(_: int) -> BatchMetadata:
    """Return empty metadata for any batch."""
    return UNTOLD


@dataclass(frozen=True)
class LedgerEntry:
    """The newest batch of one writer of one query in a sink.

    `writer` is the writer's key, `at` the commit time in milliseconds since 1970; 0 if the ledger is of an older
    version without times.
    """

    writer: str
    batch: int
    at: int = 0
    note: BatchMetadata = UNTOLD

    @property
    def query_id(self) -> str:
        """Id of the checkpoint that the batch was written from."""
        return self.writer.partition("/")[0]


def parse_metadata(recorded: dict[str, Any]) -> BatchMetadata:
    """Parse the result of `BatchMetadata.plain`; parts missing in older versions are None."""
    offsets, planned = recorded.get("offsets"), recorded.get("planned")
    return BatchMetadata(
        None if offsets is None else tuple(offsets),
        None if planned is None else int(planned),
        recorded.get("content"),
    )


def newest_by_writer(entries: Iterable[LedgerEntry]) -> dict[str, LedgerEntry]:
    """Return the entry with the greatest batch of each writer."""
    last_entries: dict[str, LedgerEntry] = {}
    for entry in entries:
        if entry.writer not in last_entries or last_entries[entry.writer].batch < entry.batch:
            last_entries[entry.writer] = entry
    return last_entries


def _parse_offsets(offsets: tuple[str | None, ...]) -> list[Any]:
    return [None if offset is None else json.loads(offset) for offset in offsets]
