"""A function over groups of a stream that sees the rows of one batch only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import BatchFunction
from millstream.analysis.facts import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """`groupBy(…).applyInPandas` and `applyInArrow`; functions of the map family have no groups to cut apart."""
    for one in query.of(BatchFunction):
        if len(one.inputs) > 1 or not (one.keys or "Groups" in one.node):
            continue
        groups = f"each '{one.keys[0].name}'" if one.keys else "the whole stream"
        yield CODE.error(
            f"{eventtime.who(query, one)} calls '{one.function}' with the rows of one batch of "
            f"{groups}, and not with all of them",
            eventtime.place(query, one),
            label="per batch",
            why="applyInPandas keeps nothing between batches: a group that two batches touch gives two results",
            fix="aggregate in SQL, or keep the group's state with transformWithState",
            query=query.name,
        )
