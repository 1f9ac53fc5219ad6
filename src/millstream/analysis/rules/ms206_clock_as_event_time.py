"""The clock taken for event time: a watermark or a window over the moment at which a row is processed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Stability, Watermark
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Columns that are nothing but the clock: one that bounds or replaces a time of the rows' own is right."""
    for one in query.walk():
        column = None
        if isinstance(one, Watermark) and one.streaming:
            column = one.column(one.event_time)
            what = f"takes the clock for event time: '{one.event_time}'"
        elif isinstance(one, Aggregate) and one.streaming and not eventtime.watermarks(one):
            column = next((key for key in one.keys if eventtime.is_time(key) and _clock(key)), None)
            what = "groups rows by the moment at which they are processed"
        if column and _clock(column):
            spans = [volatile.span for volatile in column.volatile if volatile.span]
            yield CODE.warning(
                f"{eventtime.who(query, one)} {what}",
                spans[0] if spans else eventtime.place(query, one),
                label="the clock",
                why="no row is ever late, and rows that come after an outage count where they arrive: another run "
                "over the same rows gives another answer",
                fix="take a time that the rows carry: when it happened, or when the broker took the message",
                query=query.name,
            )


def _clock(column: Column) -> bool:
    clocks = (Stability.BATCH, Stability.UNSTABLE)
    return not column.origins and any(volatile.stability in clocks for volatile in column.volatile)
