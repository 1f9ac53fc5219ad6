"""A run that ends by itself, in append mode: its last windows are not written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Growth, Join
from millstream.analysis.facts import Code
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery, Stateful
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Windows, and rows of outer joins that wait for a partner; each query once."""
    if not query.trigger.ends or query.output_mode is not OutputMode.APPEND:
        return
    held = next((one for one in (*query.of(Aggregate), *query.of(Join)) if _holds(one)), None)
    if held is None:
        return
    windows = isinstance(held, Aggregate)
    what = "its last windows" if windows else "the last rows that find no partner"
    yield CODE.warning(
        f"query '{query.name}' ends without writing {what}",
        _trigger(query, facts) or eventtime.place(query, held),
        label="stops when all is read",
        why="append mode writes a window once the watermark has passed its end, and nothing newer comes to move it"
        if windows
        else "an outer join writes such a row once the watermark has passed, and nothing newer comes to move it",
        fix="write 'output_mode: update' with a sink that merges"
        if windows
        else "run it with a trigger that goes on",
        query=query.name,
    )


def _holds(one: Stateful) -> bool:
    if isinstance(one, Aggregate):
        return one.event_time_key is not None
    return (
        isinstance(one, Join)
        and one.of_streams
        and one.how.endswith("outer")
        and one.growth is Growth.WATERMARK
    )


def _trigger(query: PlannedQuery, facts: Facts | None) -> Span | None:
    if facts is None or query.name not in facts.pipeline.queries:
        return query.span
    own = facts.pipeline.queries[query.name].trigger
    return facts.places.value(*(("queries", query.name, "trigger") if own else ("defaults", "trigger")))
