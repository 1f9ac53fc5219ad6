"""Event time that Spark no longer knows as such: it was cast or computed anew after the watermark was declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Watermark
from millstream.analysis.facts import Code
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)
INSTEAD_OF = ("without watermark",)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Aggregations and deduplications whose key is made of event time and carries no watermark.

    A key that is a whole day adds one entry a day: a warning, and none where sinks keep a row for each. All else is
    an error.
    """
    for one in eventtime.keyed(query):
        if isinstance(one, Aggregate) and query.output_mode is OutputMode.COMPLETE:
            continue
        found = eventtime.lost(one)
        if found is None:
            continue
        key, mark = found
        where = eventtime.lost_at(one, mark)
        if isinstance(where, Watermark):
            continue
        slow = isinstance(one, Aggregate) and key.type == "date" and query.output_mode is OutputMode.UPDATE
        if slow and eventtime.kept_by_sinks(query, one):
            continue
        tell = CODE.warning if slow else CODE.error
        yield tell(
            f"{eventtime.who(query, one)} groups by '{key.name}', without the watermark of '{mark.event_time}'",
            where.span or eventtime.place(query, one),
            label="lost here",
            why="Spark keeps a watermark through a new name and a window, and through no other expression: nothing "
            "leaves the state",
            fix=f"group by 'window({mark.event_time}, …)', or declare the watermark on the computed column",
            query=query.name,
        )
