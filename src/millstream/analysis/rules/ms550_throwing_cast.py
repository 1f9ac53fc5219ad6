"""Text from outside that is read as a number or a time in a way that ends the query at the first row that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.amend import replaced
from millstream.analysis.exposed import exposed, leaves, type_of
from millstream.analysis.facts import Code, Facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Expression, PlannedQuery
    from millstream.analysis.exposed import Exposed
    from millstream.diagnostics.finding import Finding

CODE = Code.of(__name__)


# What reads a text by a form, with the function that gives NULL instead of failing.
_READS = {
    "to_timestamp": "try_to_timestamp",
    "to_date": "try_to_date",
    "unix_timestamp": "try_to_timestamp",
    "to_unix_timestamp": "try_to_timestamp",
    "to_number": "try_to_number",
    "to_binary": "try_to_binary",
    "parse_json": "try_parse_json",
    "parse_url": "try_parse_url",
    "url_decode": "try_url_decode",
}
_HARMLESS = ("string", "char", "varchar", "binary", "variant", "void")


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Casts of a source's own text, and functions that read it by a form, under no condition that looks at it."""
    for one in exposed(query, facts):
        found = _reading(one)
        if found is None:
            continue
        column, into, function = found
        tolerant = _READS.get(one.expression.function, "try_cast")
        old = f"{one.expression.function}("
        kind = into.upper()
        does = (
            f"reads the text '{column}' by {one.expression.function}, which ends the query at the first row it cannot"
            if function
            else f"casts the text '{column}' to {kind}, which ends the query at the first row that is no {kind}"
        )
        yield CODE.warning(
            f"{one.owner} {does}",
            one.expression.span or one.operator.span,
            why="the batch with that row fails at each attempt, and no later row is ever read",
            fix=f"use {tolerant}, which gives NULL, and leave out or keep apart the rows where it does",
            edit=replaced(facts, one.expression.span, old, f"{tolerant}(", safe=False),
            query=query.name,
        )


def _reading(one: Exposed) -> tuple[str, str, bool] | None:
    """The text that is read, the type it becomes, and whether a function reads it."""
    expression = one.expression
    if not expression.inputs:
        return None
    text = expression.inputs[0]
    if type_of(text) != "string" or not (column := _text(one, text)):
        return None
    if expression.function == "cast":
        fails = expression.settings.get("evalMode", "ANSI") == "ANSI"
        harmless = expression.type.startswith(_HARMLESS)
        return (column, expression.type, False) if fails and not harmless else None
    if expression.function in _READS and expression.settings.get("failOnError", "true") == "true":
        return column, expression.type, True
    return None


def _text(one: Exposed, text: Expression) -> str | None:
    """The name of a source's own text in an expression."""
    return next((c.name for c in leaves(text) if c.type in ("string", "binary") and one.unchecked(c)), None)
