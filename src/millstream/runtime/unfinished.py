"""The batch that a query was in when it failed: its id, and which records it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint import record as records
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.source import OffsetRange
from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class Unfinished:
    """A batch that was planned and not committed; `reads` has a clause for each partition or set of files."""

    batch: int
    reads: tuple[str, ...]


def unfinished(pipeline: Pipeline, query: str) -> Unfinished | None:
    """The batch in progress as the checkpoint tells it, or None between batches. Does not connect."""
    folder = pipeline.checkpoint(query).local
    if folder is None:
        return None
    checkpoint = Checkpoint(folder)
    batch = checkpoint.planned()
    if batch is None or batch == checkpoint.committed():
        return None
    try:
        return Unfinished(batch, tuple(_reads(pipeline, checkpoint, batch)))
    except (CannotGoOn, OSError):
        # The query failed and is told of: a file that is torn as well must not take the place of why.
        return Unfinished(batch, ())


def _reads(pipeline: Pipeline, checkpoint: Checkpoint, batch: int) -> list[str]:
    """A clause for each piece of what each source gives to a batch, in the order of the plan."""
    planned, record = checkpoint.offsets(batch), records.read(checkpoint.folder)
    before = checkpoint.offsets(batch - 1) if batch else None
    if planned is None or record is None or len(record.sources) != len(planned.sources):
        return []
    found = []
    for index, (told, end) in enumerate(zip(record.sources, planned.sources, strict=True)):
        entry = pipeline.sources.get(told.get("name", ""))
        if entry is None or end is None:
            continue
        start = before.sources[index] if before and index < len(before.sources) else None
        files = checkpoint.files(record.log(index), start, end)
        start = start or (None if files else checkpoint.first(record.log(index)))
        found += entry.source.pieces(OffsetRange(start, end, files))
    return found
