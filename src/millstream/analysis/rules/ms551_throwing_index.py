"""A view reads an element of an array from a source, so that the query fails at the first too short array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.throwing_expressions import find_throwing, get_type
from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.sql_edits import replace_in_marked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import PlannedQuery
    from millstream.analysis.query.throwing_expressions import EvaluatedExpression
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report `items[0]` and `element_at(items, 1)` of a source's array or split text, without a condition."""
    for candidate in find_throwing(query, facts):
        array = _find_array_column(candidate)
        if array is None:
            continue
        is_element_at = candidate.expression.function == "element_at"
        yield CODE.warning(
            f"{candidate.owner} takes an element of '{array}', which comes from a source, and fails the "
            "query at the first "
            "array that is too short",
            candidate.expression.span or candidate.operator.span,
            why="the batch with this row fails again after each restart, so no later row is ever read",
            fix=f"use {'try_element_at' if is_element_at else 'get(array, index)'}, which returns NULL there",
            edit=replace_in_marked_text(
                facts, candidate.expression.span, "element_at(", "try_element_at(", safe=False
            )
            if is_element_at
            else None,
            query=query.name,
        )


def _find_array_column(candidate: EvaluatedExpression) -> str | None:
    """Return the source column of the array, if the requested element may be missing."""
    expression = candidate.expression
    if expression.function not in ("get_array_item", "element_at") or len(expression.inputs) < 2:
        return None
    array, index = expression.inputs[:2]
    if get_type(array).startswith("map") or expression.settings.get("failOnError", "true") != "true":
        return None
    # A split text always has a first part.
    first = 0 if expression.function == "get_array_item" else 1
    if array.function == "split" and index.function == "literal" and index.value == first:
        return None
    column = candidate.raw(array)
    return column.name if column else None
