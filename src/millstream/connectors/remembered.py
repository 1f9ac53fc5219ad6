"""What a sink remembers of a batch beside its rows: whose it is, where its sources ended, what its rows add up to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


BACKFILL = "backfill-"
"""How the id of a writer begins that fills a range beside its query, and is no checkpoint's."""


@dataclass(frozen=True)
class Note:
    """What is written beside a batch; each part is None where nobody told it.

    `offsets` has where the batch ended in each source, in the order of the plan: Spark's JSON, None for a source
    that had nothing yet. `planned` is when Spark planned it, in milliseconds since 1970: two plans of one number
    differ in that even where offsets are mere counters, as those of files are. `content` is the number of its rows
    and a sum over them, whatever their order: `count:sum`.
    """

    offsets: tuple[str | None, ...] | None = None
    planned: int | None = None
    content: str | None = None

    def plain(self) -> dict[str, Any]:
        """As a ledger that keeps JSON has it: what is not known is left out."""
        said = {"offsets": self.offsets, "planned": self.planned, "content": self.content}
        return {name: value for name, value in said.items() if value is not None}

    def contradicts(self, other: Note) -> bool:
        """Were these two planned apart? False where either does not tell."""
        if None not in (self.planned, other.planned) and self.planned != other.planned:
            return True
        if self.offsets is None or other.offsets is None:
            return False
        return _parsed(self.offsets) != _parsed(other.offsets)


UNTOLD = Note()
"""Of which nobody told anything."""


def nothing(_: int) -> Note:
    """The note of every batch where nobody tells anything."""
    return UNTOLD


@dataclass(frozen=True)
class Entry:
    """The newest batch that a sink holds of one writer of one query.

    `writer` is the writer's key, `at` when it was committed, in milliseconds since 1970; 0 where a ledger of an
    older version does not tell.
    """

    writer: str
    batch: int
    at: int = 0
    note: Note = UNTOLD

    @property
    def query_id(self) -> str:
        """The id of the checkpoint that it was written from."""
        return self.writer.partition("/")[0]


def noted(said: dict[str, Any]) -> Note:
    """What `Note.plain` gave; of an entry that an older version wrote, nothing."""
    offsets, planned = said.get("offsets"), said.get("planned")
    return Note(
        None if offsets is None else tuple(offsets),
        None if planned is None else int(planned),
        said.get("content"),
    )


def newest(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The entry with the greatest batch of each writer."""
    found: dict[str, Entry] = {}
    for one in entries:
        if one.writer not in found or found[one.writer].batch < one.batch:
            found[one.writer] = one
    return found


def _parsed(offsets: tuple[str | None, ...]) -> list[Any]:
    return [None if one is None else json.loads(one) for one in offsets]
