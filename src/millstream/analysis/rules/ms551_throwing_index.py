"""An element of an array from outside, taken in a way that ends the query at the first array that is shorter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.amend import replaced
from millstream.analysis.exposed import exposed, type_of
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import PlannedQuery
    from millstream.analysis.exposed import Exposed
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """`items[0]` and `element_at(items, 1)` of a source's own array or split text, under no condition."""
    for one in exposed(query, facts):
        array = _array(one)
        if array is None:
            continue
        plain = one.expression.function == "element_at"
        yield CODE.warning(
            f"{one.owner} takes an element of '{array}', which comes from outside, and ends the query at the first "
            "array that is too short",
            one.expression.span or one.operator.span,
            why="the batch with that row fails at each attempt, and no later row is ever read",
            fix=f"use {'try_element_at' if plain else 'get(array, index)'}, which gives NULL there",
            edit=replaced(facts, one.expression.span, "element_at(", "try_element_at(", safe=False)
            if plain
            else None,
            query=query.name,
        )


def _array(one: Exposed) -> str | None:
    """The column that the array comes from, when an element of it is taken that may not be there."""
    expression = one.expression
    if expression.function not in ("get_array_item", "element_at") or len(expression.inputs) < 2:
        return None
    array, index = expression.inputs[:2]
    if type_of(array).startswith("map") or expression.settings.get("failOnError", "true") != "true":
        return None
    # A text that is split has a first part always.
    first = 0 if expression.function == "get_array_item" else 1
    if array.function == "split" and index.function == "literal" and index.value == first:
        return None
    column = one.raw(array)
    return column.name if column else None
