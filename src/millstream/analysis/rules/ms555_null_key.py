"""A key of a sink that an outer join leaves empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Join
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, Operator, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


# The sides of a join whose columns are NULL in rows that found no partner.
_EMPTY = {"left_outer": (1,), "right_outer": (0,), "full_outer": (0, 1)}


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - the plan says it all
    """Keys that are a column of the side that may have no partner, and of that side alone."""
    for sink in query.sinks:
        for key in sink.key:
            column = query.root.column(key)
            if column is None or not column.copied or not column.origins:
                continue
            for join in query.of(Join):
                if not _from_empty(join, column):
                    continue
                yield CODE.warning(
                    f"the key '{key}' of {sink.name} is NULL wherever the {join.how.replace('_', ' ')} join finds "
                    "no partner",
                    sink.span or query.span,
                    why="rows without a partner all have one and the same key, or are refused for it",
                    fix="take the key from the other side of the join, or give it a value with coalesce",
                    query=query.name,
                )
                break


def _from_empty(join: Join, column: Column) -> bool:
    """Does the column come through a side of the join that may have no partner, and through no other?"""
    sides = [bool(_origins(side) & column.origins) for side in join.inputs]
    return sum(sides) == 1 and sides.index(True) in _EMPTY.get(join.how, ())


def _origins(side: Operator) -> set[tuple[str, str]]:
    return {origin for column in side.columns for origin in column.origins}
