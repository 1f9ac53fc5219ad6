"""Find the batch in which a query failed: its id, and the records that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.connectors.api.values.offsets import OffsetRange
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class UncommittedBatch:
    """A batch that was planned and not committed. `reads` has a clause for each partition or set of files."""

    batch: int
    reads: tuple[str, ...]


def find_uncommitted_batch(pipeline: Pipeline, query: str) -> UncommittedBatch | None:
    """Return the batch in progress according to the checkpoint, or None between batches, or if it cannot be read.

    Connects to nothing but the file system of a remote checkpoint.
    """
    folder = pipeline.checkpoint_folder(query)
    checkpoint = Checkpoint(folder)
    try:
        batch = checkpoint.planned()
        if batch is None or batch == checkpoint.committed():
            return None
    except OSError:
        # That the file system is away may be why the query failed.
        return None
    try:
        return UncommittedBatch(batch, tuple(_describe_input(pipeline, checkpoint, batch)))
    except (CheckpointError, OSError):
        # The failure of the query is being reported. A damaged file here must not hide its reason.
        return UncommittedBatch(batch, ())


def _describe_input(pipeline: Pipeline, checkpoint: Checkpoint, batch: int) -> list[str]:
    """Return a clause for each piece of input that the batch reads, in the order of the plan."""
    planned, record = checkpoint.offsets(batch), metadata.read(checkpoint.folder)
    previous = checkpoint.offsets(batch - 1) if batch else None
    if planned is None or record is None or len(record.sources) != len(planned.sources):
        return []
    pieces = []
    for index, (recorded, end) in enumerate(zip(record.sources, planned.sources, strict=True)):
        entry = pipeline.sources.get(recorded.get("name", ""))
        if entry is None or end is None:
            continue
        start = previous.sources[index] if previous and index < len(previous.sources) else None
        files = checkpoint.files(record.log(index), start, end)
        start = start or (None if files else checkpoint.first(record.log(index)))
        pieces += entry.source.describe_offsets(OffsetRange(start, end, files))
    return pieces
