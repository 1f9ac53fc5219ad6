"""Judge what a start would do with each query's checkpoint, before any query starts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.checkpoint import former_checkpoint, metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.replacement import finish_replacement
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.recovery.checkpoint_record import build_record
from millstream.engine.recovery.source_offsets import list_origins
from millstream.engine.sink_keys import sink_keys
from millstream.plan.change_kinds.query_changes import PlanUnknown
from millstream.plan.declared_query import declare_without_plan
from millstream.plan.query_plan import QueryPlan, judge_change, plan_query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from millstream.checkpoint.metadata import QueryMetadata
    from millstream.engine.events.event_bus import EventBus
    from millstream.pipeline.model import Pipeline


def check_restarts(
    spark: SparkSession,
    pipeline: Pipeline,
    frames: Mapping[str, DataFrame],
    probed: dict[str, dict[str, str]],
    accepted: Sequence[str],
    events: EventBus,
) -> None:
    """Report what has changed since each checkpoint was written.

    Raises `CheckpointError` for the first query whose checkpoint Spark would refuse, or would accept and give wrong
    rows, unless its code is among `accepted`. Other codes are ignored: a service manager may start a run again with
    the code of a change that has long been accepted.
    """
    plans = [plan_restart(spark, pipeline, query, frame, probed) for query, frame in frames.items()]
    for plan in plans:
        if plan.judgements:
            events.emit("plan", plan.query, verdict=plan.verdict.value, changes=plan.list_changes())
    refused = [plan for plan in plans if plan.verdict.is_refused and plan.accept_code not in accepted]
    if refused:
        raise _refuse(refused[0])


def plan_restart(
    spark: SparkSession,
    pipeline: Pipeline,
    query: str,
    frame: DataFrame,
    probed: dict[str, dict[str, str]],
) -> QueryPlan:
    """Return what a start of a query would do with its checkpoint."""
    folder = str(pipeline.checkpoint(query))
    recorded = read_base(pipeline, query)
    if not isinstance(recorded, metadata.QueryMetadata):
        return recorded
    now = build_record(spark, pipeline, query, recorded.query_id, frame, list_origins(frame), probed, {})
    plan = plan_query(query, folder, recorded, restrict_pinned(pipeline, now))
    return replace(plan, is_unfinished=_is_unfinished(pipeline, query))


def plan_without_spark(pipeline: Pipeline, query: str) -> QueryPlan:
    """Return what is known without Spark about a start of a query."""
    recorded = read_base(pipeline, query)
    if not isinstance(recorded, metadata.QueryMetadata):
        return recorded
    now = declare_without_plan(pipeline, query, sink_keys(pipeline, query), recorded)
    plan = plan_query(query, str(pipeline.checkpoint(query)), recorded, now)
    return replace(plan, is_unfinished=_is_unfinished(pipeline, query))


def _is_unfinished(pipeline: Pipeline, query: str) -> bool:
    former = former_checkpoint.read(pipeline.checkpoint_folder(query))
    return former is not None and former.is_pending


def read_base(pipeline: Pipeline, query: str) -> QueryMetadata | QueryPlan:
    """Return the record that a query is compared with, or its plan if there is nothing to compare.

    Settings that Spark keeps in the checkpoint are those of its newest offsets, whatever later sessions had.
    """
    location, folder = pipeline.checkpoint(query), pipeline.checkpoint_folder(query)
    finish_replacement(folder)
    checkpoint = Checkpoint(folder)
    planned = checkpoint.planned()
    if planned is None:
        return QueryPlan(query, str(location), is_new=True)
    recorded = metadata.read_last_committed(folder, checkpoint.committed())
    if recorded is None:
        recorded = metadata.read(folder)
    if recorded is None:
        unknown = judge_change(PlanUnknown("the checkpoint has no record of the query that wrote it"))
        return QueryPlan(query, str(location), (unknown,))
    offsets = checkpoint.offsets(planned)
    pinned = {} if offsets is None else {str(name): str(value) for name, value in offsets.conf.items()}
    return replace(recorded, pinned={**recorded.pinned, **pinned})


def restrict_pinned(pipeline: Pipeline, record: QueryMetadata) -> QueryMetadata:
    """Return the record with only those kept settings that the spec sets; others follow from the machine."""
    return replace(
        record, pinned={name: value for name, value in record.pinned.items() if name in pipeline.spark}
    )


def _refuse(plan: QueryPlan) -> CheckpointError:
    """Return the error for a checkpoint that a query must not continue from."""
    worst = plan.judgements[0]
    more = sum(judgement.verdict.is_refused for judgement in plan.judgements) - 1
    others = f" (and {more} more change{'' if more == 1 else 's'}; see 'millstream plan')" if more else ""
    consequence = f"; {worst.sinks}" if worst.sinks else ""
    return CheckpointError(
        f"query '{plan.query}' has changed and cannot continue from its checkpoint {plan.checkpoint}: "
        f"{worst.what}: "
        f"{worst.spark}{consequence}{others}",
        f"{worst.fix}; or start anyway: 'millstream run --accept {plan.accept_code}'",
    )
