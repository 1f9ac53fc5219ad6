"""Find records that were deleted before a query read them, and skip them only if the user accepts the gap."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint import gap_log, metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import CheckpointError, CheckpointMismatch, NotReady
from millstream.engine.events.event_bus import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.connectors.api.source import Source
    from millstream.connectors.api.values.offsets import OffsetGap
    from millstream.engine.events.event_bus import EventBus
    from millstream.pipeline.model import Pipeline

ProbeResults = dict[str, dict[str, str]]
# The number of gaps that a message names. A topic may have hundreds of partitions.
_SHOWN_GAPS = 3


@dataclass(frozen=True)
class MissingOffsets:
    """One gap and its place in the checkpoint: the source's name and its index in the plan."""

    source: str
    index: int
    gap: OffsetGap


def find_missing_offsets(pipeline: Pipeline, query: str, probed: ProbeResults) -> list[MissingOffsets]:
    """List the gaps before a query's next records, or before those of the batch that it repeats. Connects.

    Raises `CheckpointMismatch` if a source was replaced since the checkpoint was created (such as a topic that was
    recreated).
    """
    folder = pipeline.checkpoint_folder(query)
    record = metadata.read(folder)
    if record is None:
        return []
    starts = _next_offsets(Checkpoint(folder), record)
    missing_offsets = []
    for index, recorded in enumerate(record.sources):
        name = recorded.get("name", "")
        entry = pipeline.sources.get(name)
        start = starts[index] if index < len(starts) else None
        if entry is None or start is None:
            continue
        _require_same(query, entry.source, recorded, probed.get(name, {}))
        try:
            missing_offsets += [MissingOffsets(name, index, gap) for gap in entry.source.gaps(start)]
        except CheckpointMismatch as unfit:
            raise CheckpointMismatch(f"query '{query}': {unfit.what}", unfit.fix) from unfit
    return missing_offsets


def require_same_sources(pipeline: Pipeline, query: str) -> None:
    """Raise `CheckpointMismatch` if a source of a query was replaced since its last start. Connects.

    A source that does not respond is left to Spark, which waits for it.
    """
    record = metadata.read(pipeline.checkpoint_folder(query))
    for recorded in record.sources if record is not None else ():
        entry = pipeline.sources.get(recorded.get("name", ""))
        if entry is not None:
            with suppress(NotReady):
                _require_same(query, entry.source, recorded, entry.source.probe())


def _require_same(
    query: str, source: Source, recorded: Mapping[str, str], current: Mapping[str, str]
) -> None:
    if change := source.identity_change(recorded, current):
        raise CheckpointMismatch(
            f"query '{query}': {change} since it last ran: with the old offsets, the query would skip records "
            "or fail",
            f"start '{query}' with an empty checkpoint folder; the rows in its sinks stay",
        )


def accept_gaps(
    pipeline: Pipeline, queries: Sequence[str], probed: ProbeResults, events: EventBus, *, accepted: bool
) -> dict[str, list[MissingOffsets]]:
    """Return the gaps of each query that has some, after recording them in its checkpoint and emitting events.

    Raises `CheckpointError`, which names them, unless they are `accepted` or the source's own settings skip them.
    """
    by_query = {query: gaps for query in queries if (gaps := find_missing_offsets(pipeline, query, probed))}
    for query, gaps in by_query.items():
        if not accepted and (stopping := [gap for gap in gaps if stops_query(pipeline, gap)]):
            raise missing_records_error(query, stopping)
    for query, gaps in by_query.items():
        folder = pipeline.checkpoint_folder(query)
        entries = [gap_to_dict(gap) for gap in gaps]
        gap_log.add(folder, [{**gap, "accepted": accepted, "at": now()} for gap in entries])
        for gap in entries:
            events.emit("gap", query, **gap)
    return {
        query: stopping_gaps
        for query, gaps in by_query.items()
        if (stopping_gaps := [gap for gap in gaps if stops_query(pipeline, gap)])
    }


def stops_query(pipeline: Pipeline, missing_offsets: MissingOffsets) -> bool:
    """Return whether the source would end the query at this gap."""
    source = pipeline.sources[missing_offsets.source].source
    return source.lenient() != source


def ignore_data_loss(pipeline: Pipeline, missing_offsets: Mapping[str, Sequence[MissingOffsets]]) -> Pipeline:
    """Return the pipeline with the sources of these gaps set to continue if records are missing."""
    names = {gap.source for gaps in missing_offsets.values() for gap in gaps}
    sources = {
        name: entry.model_copy(update={"source": entry.source.lenient()}) if name in names else entry
        for name, entry in pipeline.sources.items()
    }
    return pipeline.model_copy(update={"sources": sources})


def has_passed_gaps(checkpoint: Checkpoint, gaps: Sequence[MissingOffsets]) -> bool:
    """Return whether a committed batch has moved past all of these gaps."""
    newest = checkpoint.committed()
    committed_offsets = checkpoint.offsets(newest) if newest is not None else None
    return committed_offsets is not None and all(
        missing_offsets.gap.is_passed_by(committed_offsets.sources[missing_offsets.index])
        for missing_offsets in gaps
    )


def missing_records_error(query: str, gaps: Sequence[MissingOffsets]) -> CheckpointError:
    """Return the error for these gaps: the missing offsets, the number of records, and what to do."""
    message = "; ".join(str(missing_offsets.gap) for missing_offsets in gaps[:_SHOWN_GAPS])
    if len(gaps) > _SHOWN_GAPS:
        total = sum(missing_offsets.gap.end - missing_offsets.gap.start for missing_offsets in gaps)
        message += f"; and {len(gaps) - _SHOWN_GAPS} more partitions, {total:,} records in all"
    return CheckpointError(
        f"records were deleted before query '{query}' read them: {message}",
        f"find out which records are lost; to continue without them: 'millstream run --select {query} "
        f"--accept-gap'",
    )


def gap_to_dict(missing_offsets: MissingOffsets) -> dict[str, object]:
    """Return a gap as events and the checkpoint contain it."""
    gap = missing_offsets.gap
    return {
        "source": missing_offsets.source,
        "topic": gap.topic,
        "partition": gap.partition,
        "from": gap.start,
        "to": gap.end,
        "records": gap.end - gap.start,
    }


def _next_offsets(checkpoint: Checkpoint, record: QueryMetadata) -> tuple[str | None, ...]:
    """Return where the next batch begins in each source. A planned but uncommitted batch is the next one."""
    newest = checkpoint.planned()
    planned = checkpoint.offsets(newest) if newest is not None else None
    if newest is None or planned is None:
        return ()
    if checkpoint.committed() == newest:
        return planned.sources
    if newest == 0:
        return tuple(checkpoint.first(record.log(index)) for index in range(len(planned.sources)))
    previous = checkpoint.offsets(newest - 1)
    return previous.sources if previous else ()


def explain_data_loss(pipeline: Pipeline, query: str) -> CheckpointError | None:
    """Return the error for records missing at this moment, after Spark has ended a query for them, or None.

    Raises `NotReady` if a source does not respond.
    """
    try:
        probed = {name: entry.source.probe() for name, entry in pipeline.sources.items() if not entry.static}
        if gaps := find_missing_offsets(pipeline, query, probed):
            return missing_records_error(query, gaps)
    except CheckpointMismatch as unfit:
        return unfit
    return None
