"""An aggregation in update mode has no event time among its keys, so its groups never leave the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query import event_time
from millstream.analysis.query.plan_model import Aggregate
from millstream.analysis.rule_context import Code
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Check update mode only: complete mode keeps every group by definition, and Spark refuses append mode.

    A sink that stores one row per key shows that the total is intended: its table is as large as the state. This is
    not so for the rows of each hour or minute, whose time is written as text or as a number. Keys with few possible
    values, or from a static table, bound the state by themselves.
    """
    if query.output_mode is not OutputMode.UPDATE:
        return
    for aggregate in query.of(Aggregate):
        unbounded_keys = [key for key in aggregate.keys if not event_time.is_bounded(aggregate, key)]
        if (
            event_time.has_time_key(aggregate)
            or aggregate.event_time_key
            or not unbounded_keys
            or event_time.find_lost_watermark(aggregate)
        ):
            continue
        if event_time.is_total_of_sinks(query, aggregate):
            continue
        time = next((key for key in unbounded_keys if event_time.is_written_time(aggregate, key)), None)
        key = time or unbounded_keys[0]
        yield CODE.warning(
            f"{event_time.owner_label(query, aggregate)} keeps a group for each '{key.name}' forever",
            event_time.find_span(query, aggregate),
            label="groups here",
            why=f"Spark removes groups by a timestamp or a window only, and '{key.name}' is of type {key.type}"
            if time
            else _find_reason(aggregate),
            fix=f"group by a window over event time instead of '{key.name}'"
            if time
            else "also group by a window over event time; or, if you want a total per key, write one row per key "
            "with 'merge_on'",
            query=query.name,
        )


def _find_reason(aggregate: Aggregate) -> str:
    if event_time.list_watermarks(aggregate):
        return (
            "a watermark removes a group only if event time is among the grouping keys, which it is not here"
        )
    return "Spark cannot know when a group is complete, because event time is not among the grouping keys"
