"""The key of a sink is NULL in the rows of an outer join that have no match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Join
from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, Operator, PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


# The sides of a join whose columns are NULL in unmatched rows.
_NULLABLE_SIDES = {"left_outer": (1,), "right_outer": (0,), "full_outer": (0, 1)}


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:  # noqa: ARG001 - the plan says it all
    """Report keys that come only from the side of an outer join that may have no match."""
    for sink in query.sinks:
        for key in sink.key:
            column = query.root.column(key)
            if column is None or not column.is_copied or not column.origins:
                continue
            for join in query.of(Join):
                if not _comes_from_nullable_side(join, column):
                    continue
                yield CODE.warning(
                    f"the key '{key}' of {sink.name} is NULL wherever the {join.how.replace('_', ' ')} join finds "
                    "no match",
                    sink.span or query.span,
                    why="all rows without a match have the same key, NULL, so they replace each other or the sink "
                    "refuses them",
                    fix="use the key column of the side whose rows are all kept, or replace NULL with coalesce",
                    query=query.name,
                )
                break


def _comes_from_nullable_side(join: Join, column: Column) -> bool:
    """Return whether the column comes only from a side of the join that may have no match."""
    sides = [bool(_list_origins(side) & column.origins) for side in join.inputs]
    return sum(sides) == 1 and sides.index(True) in _NULLABLE_SIDES.get(join.how, ())


def _list_origins(side: Operator) -> set[tuple[str, str]]:
    return {origin for column in side.columns for origin in column.origins}
