"""Rows with two event times given to an operator that keeps state: Spark fails at the first batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis import eventtime
from millstream.analysis.dataflow import Aggregate, Deduplicate, Join
from millstream.analysis.facts import Code
from millstream.analysis.needed import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, Operator, PlannedQuery, Stateful
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001
    """Keys of an aggregation; all used columns that reach a deduplication or a side of a join of streams."""
    for one in (*query.of(Aggregate), *query.of(Deduplicate), *query.of(Join)):
        for columns in _given(query, one):
            times = [column.name for column in columns if column.delay is not None]
            if len(times) < 2:
                continue
            yield CODE.error(
                f"{eventtime.who(query, one)} gives rows with two event times, '{times[0]}' and '{times[1]}', "
                f"to {_NAMES[type(one)]}",
                eventtime.place(query, one),
                label="keeps state here",
                why="Spark cannot tell which of them the watermark is for, and fails at the first batch",
                fix=f"leave '{times[1]}' out before, or make it another time: 'CAST({times[1]} AS STRING)'",
                query=query.name,
            )
            break


_NAMES: dict[type[Stateful], str] = {
    Aggregate: "an aggregation",
    Deduplicate: "a deduplication",
    Join: "a join of streams",
}


def _given(query: PlannedQuery, one: Operator) -> list[list[Column]]:
    if isinstance(one, Aggregate):
        return [list(one.keys)]
    if isinstance(one, Join) and not one.of_streams:
        return []
    return needed(query.root, one)
