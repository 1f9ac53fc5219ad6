"""Derive the delivery guarantee of a script's query from its sources, its plan and its sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.delivery_guarantee import GuaranteeReason, Promise, combine_guarantees
from millstream.analysis.query.nondeterminism import ReplayEffect, find_impacts
from millstream.checking.scripts.interception.spark_formats import NOT_REPLAYABLE, sink_guarantee
from millstream.connectors.api.values.replay_behaviour import Replayability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.checking.scripts.interception.recording import SourceRead, StartedQuery
    from millstream.spec.guarantee import Guarantee


def derive_guarantee(
    query: StartedQuery, sources: Sequence[SourceRead], plan: PlannedQuery | None
) -> Promise:
    """Return the guarantee of a query's sink. `sources` are the streams that the query reads."""
    sink = plan.sinks[0] if plan and plan.sinks else None
    guarantee, reason = _sink(query, plan)
    unreplayable = [entry for entry in sources if entry.format in NOT_REPLAYABLE]
    impacts = find_impacts(plan, sink) if plan else []
    reach = impacts[0].reach if impacts else ReplayEffect.NOTHING
    result = combine_guarantees(Replayability.NONE if unreplayable else Replayability.EXACT, reach, guarantee)
    source_reasons = [
        GuaranteeReason(f"source '{entry.name}' ({entry.format}) cannot replay a lost batch", entry.span)
        if entry in unreplayable
        else GuaranteeReason(
            f"source '{entry.name}' ({entry.format}) is read again from the offsets in the checkpoint", entry.span
        )
        for entry in sources
    ]  # fmt: skip
    plan_reasons = [
        GuaranteeReason(
            f"{impact.cause.function} gives another value when a batch runs again", impact.cause.span
        )
        for impact in impacts
    ]
    sink_reason = GuaranteeReason(f"{query.format}: {reason}", query.span)
    weakest = None
    if result is not guarantee:
        weakest = (
            next(
                (entry for entry, read in zip(source_reasons, sources, strict=True) if read in unreplayable),
                None,
            )
            or plan_reasons[0]
        )
    elif str(result) != "exactly-once":
        weakest = sink_reason
    reasons = tuple(dict.fromkeys(entry.text for entry in (*source_reasons, *plan_reasons, sink_reason)))
    label = f"{query.format} {query.target}".strip()
    return Promise(query.name, label, result, reasons, weakest, is_planned=plan is not None)


def _sink(query: StartedQuery, plan: PlannedQuery | None) -> tuple[Guarantee, str]:
    """Return the guarantee of the sink and the reason. For a function, read its source code."""
    guarantee, reason = sink_guarantee(query.format)
    code = plan.sinks[0].function if plan and plan.sinks else None
    if query.format != "foreachBatch" or code is None:
        return guarantee, reason
    append = next(iter(code.repeated_writes), None)
    if append is not None:
        where = f" (line {append.span.line})" if append.span else ""
        reason = f"{code.name}() adds rows{where}, and adds them again when a batch is repeated"
    elif code.uses_batch_id:
        reason = (
            f"{code.name}() uses the batch id; Millstream cannot tell if it skips a batch that it has written"
        )
    return guarantee, reason
