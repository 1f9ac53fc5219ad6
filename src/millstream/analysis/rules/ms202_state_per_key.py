"""An aggregation in update mode without event time among its keys: a running total, of which no group ever leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate
from millstream.analysis.facts import Code
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Update mode only: complete keeps every group by its meaning, and append is refused by Spark.

    A sink that keeps one row a key shows that the total is meant: its table is as large as the state. Keys that
    can have few values only, or that come from a static table, bound the state by themselves.
    """
    if query.output_mode is not OutputMode.UPDATE:
        return
    for one in query.of(Aggregate):
        free = [key for key in one.keys if not eventtime.bounded(one, key)]
        if eventtime.timed(one) or one.event_time_key or not free or eventtime.lost(one):
            continue
        if eventtime.kept_by_sinks(query, one):
            continue
        yield CODE.warning(
            f"{eventtime.who(query, one)} keeps a group for each '{free[0].name}' for ever",
            eventtime.place(query, one),
            label="groups here",
            why=_why(one),
            fix="group by a window over event time too, or write one row a key with 'merge_on' if the total is meant",
            query=query.name,
        )


def _why(one: Aggregate) -> str:
    if eventtime.watermarks(one):
        return "a watermark removes a group only when event time is among its keys; here it removes none"
    return "without event time among its keys Spark cannot know that a group is complete"
