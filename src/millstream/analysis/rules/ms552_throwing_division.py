"""A view divides by a number from a source, so that the query fails at the first row in which it is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.throwing_expressions import find_throwing, strip_casts
from millstream.analysis.rule_context import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


_DIVIDES = frozenset({"divide", "integral_divide", "remainder", "pmod"})


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report divisors that are a source's column, without a condition that checks it."""
    for candidate in find_throwing(query, facts):
        if candidate.expression.function not in _DIVIDES or len(candidate.expression.inputs) < 2:
            continue
        divisor = strip_casts(candidate.expression.inputs[1]).column
        if divisor is None or not candidate.is_unchecked(divisor):
            continue
        yield CODE.warning(
            f"{candidate.owner} divides by '{divisor.name}', which comes from a source, and fails the query at "
            f"the first row in which it is 0",
            candidate.expression.span or candidate.operator.span,
            why="the batch with this row fails again after each restart, so no later row is ever read",
            fix=f"divide by nullif({divisor.name}, 0), which gives NULL for such a row, or filter out these rows "
            f"before",
            query=query.name,
        )
