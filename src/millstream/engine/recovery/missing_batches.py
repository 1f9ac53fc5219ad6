"""Find batches that a checkpoint has committed and a sink's ledger lacks, and suggest what to do about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint import adoption_log, empty_batches, metadata
from millstream.connectors.api.source import Source
from millstream.diagnostics.failure import CheckpointError
from millstream.pipeline.graph import PipelineGraph

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from millstream.checkpoint.folder import Checkpoint
    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.sink import Sink
    from millstream.connectors.api.writer import Writer
    from millstream.pipeline.model import Pipeline


@dataclass(frozen=True)
class MissingBatches:
    """The batches that a sink lacks, in order.

    `is_certain` is False if a batch without rows would look the same, so that some of them may have had none.
    `since` is the first batch that the sink can have in its ledger.
    """

    batches: tuple[int, ...] = ()
    is_certain: bool = True
    since: int | None = None

    def __str__(self) -> str:
        is_plural = len(self.batches) > 1
        return (
            f"batch{'es' if is_plural else ''} "
            f"{format_batches(self.batches).replace('-', ' to ').replace(',', ', ')}"
        )


def format_batches(batches: Iterable[int]) -> str:
    """Format batches as `--batches` takes them: `5-7,9`."""
    ranges: list[list[int]] = []
    for batch in batches:
        if ranges and ranges[-1][-1] == batch - 1:
            ranges[-1] = [ranges[-1][0], batch]
        else:
            ranges.append([batch])
    return ",".join("-".join(map(str, dict.fromkeys(span))) for span in ranges)


def find_missing(
    checkpoint: Checkpoint,
    sink: Sink,
    writer: Writer,
    own_entry: LedgerEntry | None,
    committed: int | None,
    waiting: Collection[int],
) -> MissingBatches:
    """Find the batches up to `committed` that are not in the ledger of a writer, whose newest entry is `own_entry`.

    Batches that are spooled for the sink (`waiting`), that had no rows, or that were accepted as missing are not
    included.
    """
    if not writer.has_ledger:
        return MissingBatches()
    following = 0 if committed is None else committed + 1
    since, is_known = _find_since(checkpoint, sink, writer, own_entry, following)
    first = max(since if is_known else 0, own_entry.batch + 1 if own_entry is not None else 0)
    if first >= following:
        return MissingBatches(since=since)
    explained = {*waiting, *adoption_log.read_missing(checkpoint.folder, writer.identity.key)}
    empty = empty_batches.read(checkpoint.folder, writer.identity.sink) if writer.skips_empty else None
    if empty is not None:
        explained |= set(empty.batches)
    missing = tuple(batch for batch in range(first, following) if batch not in explained)
    is_certain = is_known
    if writer.skips_empty:
        is_certain = is_certain and empty is not None and any(batch >= empty.since for batch in missing)
        if (
            not is_certain
            and own_entry is not None
            and _same_offsets(checkpoint, own_entry.batch, following - 1)
        ):
            missing = ()
    return MissingBatches(missing, is_certain, since)


def find_first_batch(checkpoint: Checkpoint, sink: Sink, writer: Writer, committed: int | None) -> int:
    """Return the first batch that a sink can have in its ledger, before the sink itself has been asked."""
    return _find_since(checkpoint, sink, writer, None, 0 if committed is None else committed + 1)[0]


def _find_since(
    checkpoint: Checkpoint, sink: Sink, writer: Writer, own_entry: LedgerEntry | None, following: int
) -> tuple[int, bool]:
    """Return the first batch that a sink can have in its ledger, and whether that is known.

    `following` is the next batch. It is the first one for a sink that the last start did not have, or whose writer
    had no ledger then.
    """
    record = metadata.read(checkpoint.folder)
    if record is None or record.query_id != writer.identity.query_id:
        return following if own_entry is None else 0, True
    entry = record.sink(writer.identity.sink)
    if entry is not None and own_entry is None and not sink.matches_identity(entry):
        # The sink is at another place, which has received nothing of this query yet.
        return following, True
    if entry is not None and "since" not in entry:
        # An older version wrote the record. A sink without an entry may come from a start that delivered nothing.
        return (following, False) if own_entry is None else (0, True)
    # An older copy of the checkpoint may end before that batch.
    return min(int(entry["since"] or following), following) if entry is not None else following, True


def _same_offsets(checkpoint: Checkpoint, earlier: int, later: int) -> bool:
    """Return whether no source delivered any records to the batches after `earlier`, up to `later`."""
    try:
        first, last = checkpoint.offsets(earlier), checkpoint.offsets(later)
    except CheckpointError:
        return False
    return first is not None and last is not None and first.sources == last.sources


def suggest_remedy(
    pipeline: Pipeline, query: str, sink: Sink, checkpoint: Checkpoint, batches: Sequence[int]
) -> str:
    """Suggest what to do about batches that a sink lacks, with commands."""
    continue_command = f"continue without them: 'millstream run --adopt --select {query}'"
    reason = explain_inexact(pipeline, query, checkpoint, batches)
    if not reason:
        return (
            f"write exactly these: 'millstream backfill {query} --batches {format_batches(batches)}'; or "
            f"{continue_command}"
        )
    mode = pipeline.queries[query].output_mode
    if sink.backfill_conflict(mode):
        return f"{continue_command}; they cannot be written one by one, because {reason}"
    return (
        f"{continue_command}, and then add the rows that the sink lacks: 'millstream backfill {query}'; the "
        f"batches cannot be written one by one, because {reason}"
    )


def explain_inexact(pipeline: Pipeline, query: str, checkpoint: Checkpoint, batches: Sequence[int]) -> str:
    """Explain why the rows of these batches cannot be computed batch by batch, as a clause. Empty if they can."""
    if checkpoint.has_state():
        return "the query has state, and the state with which they were computed is gone"
    for name in PipelineGraph.of(pipeline).sources_of(query):
        entry = pipeline.sources[name]
        if not entry.static and not entry.source.can_read_once and not can_read_ranges(entry.source):
            return f"source '{name}' ({entry.source.describe()}) cannot be read one batch at a time"
    if metadata.read(checkpoint.folder) is None:
        return "the checkpoint's _millstream/record.json is gone"
    needed = {*batches, *(batch - 1 for batch in batches if batch)}
    if any(not (checkpoint.folder / "offsets" / str(batch)).exists() for batch in needed):
        return "the checkpoint no longer has the offsets of all of them"
    return ""


def can_read_ranges(source: Source) -> bool:
    """Return whether the records of one batch can be read again."""
    return type(source).read_range is not Source.read_range
