"""Give a query a new checkpoint, with the former one kept and the rows in its sinks taken care of."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Aggregate, WindowKind
from millstream.backfill.event_time import find_event_time_column
from millstream.backfill.execute import backfill, require_possible
from millstream.backfill.options import BackfillOptions, PastRows
from millstream.backfill.targets import list_other_writers
from millstream.checkpoint import former_checkpoint, metadata
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.remote.path import require_local
from millstream.checkpoint.replacement import name_backup, replace_checkpoint
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.failpoints import hit_failpoint
from millstream.diagnostics.failure import InvalidInput
from millstream.engine.checkpoint_changes.fresh_checkpoint import (
    ReadFrom,
    adopt_rows,
    keep_watermark,
    prepare_fresh_checkpoint,
    read_former,
)
from millstream.engine.delivery.undelivered import check_new_id
from millstream.engine.recovery.checkpoint_record import build_record
from millstream.engine.recovery.source_offsets import list_origins
from millstream.pipeline.graph import PipelineGraph
from millstream.spec.location import Location
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.connectors.api.sink import Sink
    from millstream.pipeline.model import Pipeline


class PastChoice(StrEnum):
    """What happens to the past of a query that begins with a new checkpoint over filled sinks."""

    BACKFILL = "backfill"
    """The rows in the sinks are replaced by the result over everything that was read."""
    CONTINUE = "continue"
    """The rows in the sinks stay, and the query reads on where it was, without its state."""
    NOW = "now"
    """The rows in the sinks stay, and the query begins with what arrives from now on."""


def find_conflict(pipeline: Pipeline, query: str, past: PastChoice) -> str:
    """Explain why a choice is not possible for a query, as a clause; empty if it is. Does not connect."""
    mode = pipeline.queries[query].output_mode
    for entry in pipeline.queries[query].to:
        sink = entry.sink
        conflict = (
            _explain_unreplaceable(pipeline, query, sink)
            if past is PastChoice.BACKFILL
            else sink.adoption_conflict(mode)
        )
        if conflict:
            return f"{sink.describe()}: {conflict}"
    if past is PastChoice.BACKFILL:
        for name in PipelineGraph.of(pipeline).sources_of(query):
            declared = pipeline.sources[name]
            if not declared.static and not declared.source.can_read_once:
                return (
                    f"source '{name}' ({declared.source.describe()}) does not store its rows, so they cannot be "
                    f"read again"
                )
    return ""


def _explain_unreplaceable(pipeline: Pipeline, query: str, sink: Sink) -> str:
    mode = pipeline.queries[query].output_mode
    if not sink.stores_rows or mode is OutputMode.COMPLETE:
        return ""
    if conflict := sink.backfill_conflict(mode):
        return conflict
    if sink.delete_condition is not None:
        return "its rows cannot be compared with the result, because some rows delete others (delete_when)"
    if others := list_other_writers(pipeline, query, sink):
        return f"query '{others[0]}' also writes it, and the rows of that query would be deleted"
    return "" if sink.replacing_range(EventTimeRange()) is not None else "its rows cannot be replaced"


def renew_checkpoint(
    spark: SparkSession,
    pipeline: Pipeline,
    planned: PlannedQuery,
    frame: DataFrame,
    past: PastChoice,
    say: Callable[[str], None],
) -> Path:
    """Give a query a fresh checkpoint in the place of its own. Returns where the former one is kept.

    A kill leaves the former checkpoint as it was, or the fresh one. If the rows in the sinks are then yet to be
    replaced, a run is refused until `finish_past` has done so.
    """
    query = planned.name
    folder = _folder(pipeline, query)
    if past is PastChoice.BACKFILL:
        _require_all_input(pipeline, query)
    check_new_id(pipeline, query)
    with CheckpointLock(folder, f"{pipeline.name}.{query} plan --apply"):
        former = read_former(folder, past, is_pending=past is PastChoice.BACKFILL)
        before = metadata.read(former_checkpoint.find_base(folder))
        record = build_record(spark, pipeline, query, "", frame, list_origins(frame), {}, {})
        former = keep_watermark(former, before, record)
        read_from = ReadFrom.NOW if past is PastChoice.NOW else ReadFrom.FORMER
        if past is PastChoice.BACKFILL:
            rows = select_past_rows(pipeline, planned, record, former.watermark)
            read_from = ReadFrom.FORMER if rows == PastRows() else ReadFrom.START
            former = replace(former, watermark=0) if rows.is_empty else former
            if _has_rows_to_replace(pipeline, query):
                base = _with_checkpoint(pipeline, query, former_checkpoint.find_base(folder))
                require_possible(spark, base, planned, BackfillOptions(replace=True, past=rows))
        say(f"{query}: preparing the checkpoint")
        prepared = prepare_fresh_checkpoint(spark, pipeline, query, frame, read_from, former)
        if past is not PastChoice.BACKFILL:
            adopt_rows(spark, pipeline, query, prepared)
        backup = name_backup(folder, "renewal", former.batch)
        hit_failpoint("renewal.prepared")
        replace_checkpoint(folder, prepared, backup)
    hit_failpoint("renewal.replaced")
    if past is PastChoice.BACKFILL:
        finish_past(spark, pipeline, planned, say)
    return backup


def finish_past(
    spark: SparkSession, pipeline: Pipeline, planned: PlannedQuery, say: Callable[[str], None]
) -> None:
    """Replace the rows in the sinks of a query with a new checkpoint. Running it again changes nothing."""
    query = planned.name
    folder = _folder(pipeline, query)
    with CheckpointLock(folder, f"{pipeline.name}.{query} plan --apply"):
        former, record = former_checkpoint.read(folder), metadata.read(folder)
        assert former is not None, "called for a checkpoint with a former one"
        assert record is not None, "it is written with the fresh checkpoint"
        if _has_rows_to_replace(pipeline, query):
            rows = select_past_rows(pipeline, planned, record, former.watermark)
            options = BackfillOptions(replace=True, past=rows)
            former_pipeline = _with_checkpoint(pipeline, query, former_checkpoint.locate(folder, former))
            backfill(spark, former_pipeline, [planned], [query], options, say)
        hit_failpoint("renewal.filled")
        adopt_rows(spark, pipeline, query, folder)
        former_checkpoint.write(folder, replace(former, is_pending=False))


def _has_rows_to_replace(pipeline: Pipeline, query: str) -> bool:
    """Return whether a sink has rows that the next batch does not replace by itself."""
    declared = pipeline.queries[query]
    return declared.output_mode is not OutputMode.COMPLETE and any(
        entry.sink.stores_rows for entry in declared.to
    )


def select_past_rows(
    pipeline: Pipeline, planned: PlannedQuery, record: QueryMetadata, watermark: int
) -> PastRows:
    """Select the rows that a query will not write itself from a new checkpoint.

    A query without state reads on: these are all rows up to there. One with windows reads everything again and drops
    the rows of windows that are closed at the watermark (in milliseconds) as late: these are the closed windows.
    Other state has no such border: the query computes all rows anew.
    """
    stateful = () if record.plan is None else record.plan.stateful
    if record.plan is not None and not stateful:
        return PastRows()
    aggregates = [
        operator for operator in planned.walk() if isinstance(operator, Aggregate) and operator.is_streaming
    ]
    window = aggregates[0].window if len(aggregates) == len(stateful) == 1 else None
    closes = (
        window is not None
        and window.length is not None
        and window.kind is not WindowKind.SESSION
        and aggregates[0].event_time_key is not None
    )
    if not closes or not watermark or not _has_event_time(pipeline, planned):
        return PastRows(is_empty=True)
    return PastRows(watermark=datetime.fromtimestamp(watermark / 1000, UTC))


def _has_event_time(pipeline: Pipeline, planned: PlannedQuery) -> bool:
    try:
        find_event_time_column(pipeline, planned)
    except InvalidInput:
        return False
    return True


def _require_all_input(pipeline: Pipeline, query: str) -> None:
    """Raise `InvalidInput` if a source no longer has all its records. Connects."""
    for name in PipelineGraph.of(pipeline).sources_of(query):
        entry = pipeline.sources[name]
        if entry.static:
            continue
        lost = "deletes what a query has read" if entry.source.removes_read_files() else ""
        gaps = entry.source.forgotten() if not lost else []
        if lost or gaps:
            raise InvalidInput(
                f"source '{name}' ({entry.source.describe()}) {lost or f'no longer has all its records: {gaps[0]}'}: "
                "rows that were computed from them would be gone",
                "keep the rows: --past continue",
            )


def _with_checkpoint(pipeline: Pipeline, query: str, folder: CheckpointPath) -> Pipeline:
    """Return the pipeline with another checkpoint folder for a query."""
    changed = pipeline.queries[query].model_copy(update={"checkpoint": Location(str(folder))})
    return pipeline.model_copy(update={"queries": {**pipeline.queries, query: changed}})


def _folder(pipeline: Pipeline, query: str) -> Path:
    return require_local(pipeline.checkpoint_folder(query), "a fresh checkpoint")
