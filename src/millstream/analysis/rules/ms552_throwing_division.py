"""A division by a number from outside, which ends the query at the first row where it is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.exposed import bare, exposed
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


_DIVIDES = frozenset({"divide", "integral_divide", "remainder", "pmod"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Divisors that are a source's own column, under no condition that looks at it."""
    for one in exposed(query, facts):
        if one.expression.function not in _DIVIDES or len(one.expression.inputs) < 2:
            continue
        by = bare(one.expression.inputs[1]).column
        if by is None or not one.unchecked(by):
            continue
        yield CODE.warning(
            f"{one.owner} divides by '{by.name}', which comes from outside, and ends the query at the first row "
            "where it is 0",
            one.expression.span or one.operator.span,
            why="the batch with that row fails at each attempt, and no later row is ever read",
            fix=f"divide by nullif({by.name}, 0), which gives NULL there, or leave such rows out before",
            query=query.name,
        )
