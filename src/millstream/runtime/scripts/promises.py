"""What each query of a script promises: its sources, its path and its sink, by Spark's own formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.guarantee import Promise, Reason, strongest
from millstream.analysis.reach import Reach, touches
from millstream.connectors.source import Replays
from millstream.runtime.scripts.formats import NOT_REPLAYABLE, sink_keeps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.runtime.scripts.record import SourceRead, Started
    from millstream.spec.guarantee import Guarantee


def promise(query: Started, sources: Sequence[SourceRead], plan: PlannedQuery | None) -> Promise:
    """What the sink of one query keeps; `sources` are the streams that it reads."""
    sink = plan.sinks[0] if plan and plan.sinks else None
    kept, why = _sink(query, plan)
    lost = [one for one in sources if one.format in NOT_REPLAYABLE]
    touched = touches(plan, sink) if plan else []
    reach = touched[0].reach if touched else Reach.NOTHING
    result = strongest(Replays.NONE if lost else Replays.EXACT, reach, kept)
    first = [
        Reason(f"source '{one.name}' ({one.format}) cannot give a lost batch again", one.span)
        if one in lost
        else Reason(f"source '{one.name}' ({one.format}) is read again from the offsets in the checkpoint", one.span)
        for one in sources
    ]  # fmt: skip
    path = [
        Reason(f"{touch.cause.function} gives another value when a batch runs again", touch.cause.span)
        for touch in touched
    ]
    held = Reason(f"{query.format}: {why}", query.span)
    weakest = None
    if result is not kept:
        weakest = (
            next((one for one, read in zip(first, sources, strict=True) if read in lost), None) or path[0]
        )
    elif str(result) != "exactly-once":
        weakest = held
    reasons = tuple(dict.fromkeys(one.text for one in (*first, *path, held)))
    shown = f"{query.format} {query.target}".strip()
    return Promise(query.name, shown, result, reasons, weakest, planned=plan is not None)


def _sink(query: Started, plan: PlannedQuery | None) -> tuple[Guarantee, str]:
    """What the sink keeps, and why; of a function by what its source shows."""
    kept, why = sink_keeps(query.format)
    code = plan.sinks[0].function if plan and plan.sinks else None
    if query.format != "foreachBatch" or code is None:
        return kept, why
    adding = next((write for write in code.writes if write.adds), None)
    if adding is not None and not code.uses_batch_id:
        where = f" (line {adding.span.line})" if adding.span else ""
        why = f"{code.name}() adds rows{where}, and adds them again when a batch is repeated"
    elif code.uses_batch_id:
        why = f"{code.name}() looks at the batch's number; whether it passes over a batch it has is its own affair"
    return kept, why
