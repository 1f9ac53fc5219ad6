"""A join of two streams, or a session window, that has no key: Spark fails at the first batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Join, WindowKind
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Joins whose condition, and a WHERE right above it, compare no column of both sides for equality."""
    above = {id(side): one for one in query.walk() for side in one.inputs}
    for one in query.of(Join):
        over = above.get(id(one))
        if not one.of_streams or one.keys or (over is not None and over.node == "Filter"):
            continue
        yield CODE.error(
            f"{eventtime.who(query, one)} joins two streams on no equal key",
            eventtime.place(query, one),
            label="joins here",
            why="Spark fails at the first batch: it keeps the rows of both streams by their key",
            fix="add such as 'l.id = r.id' to the condition",
            query=query.name,
        )
    for group in query.of(Aggregate):
        if group.window and group.window.kind is WindowKind.SESSION and len(group.keys) == 1:
            yield CODE.error(
                f"{eventtime.who(query, group)} groups by a session window and nothing else",
                eventtime.place(query, group),
                label="groups here",
                why="Spark fails at the first batch: a session belongs to a key",
                fix="group by what has the session too, such as a user",
                query=query.name,
            )
