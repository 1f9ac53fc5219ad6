"""Text from a source is converted to a number or a time, so that the query fails at the first invalid text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.throwing_expressions import find_throwing, get_type, strip_casts
from millstream.analysis.rule_context import Code, Facts
from millstream.analysis.sql_edits import replace_in_marked_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, Expression, PlannedQuery
    from millstream.analysis.query.throwing_expressions import EvaluatedExpression
    from millstream.diagnostics.finding import Edit, Finding

CODE = Code.of(__name__)


# Functions that parse a text, with the variant that returns NULL instead of failing.
_TOLERANT_FUNCTIONS = {
    "to_timestamp": "try_to_timestamp",
    "to_date": "try_to_date",
    "to_number": "try_to_number",
    "to_binary": "try_to_binary",
    "parse_json": "try_parse_json",
    "parse_url": "try_parse_url",
    "url_decode": "try_url_decode",
}
# They have no such variant, but try_to_timestamp can parse the text for them.
_EPOCH_FUNCTIONS = ("unix_timestamp", "to_unix_timestamp")
_PARTS = ("get_struct_field", "get_array_item", "get_map_value", "element_at")
_HARMLESS_TYPES = ("string", "char", "varchar", "binary", "variant", "void")


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Report casts of a source's text, and functions that parse it, without a condition that checks it."""
    for candidate in find_throwing(query, facts):
        reading = _find_failing_read(candidate)
        if reading is None:
            continue
        text_label, type_name, function = reading
        type_label = type_name.upper()
        action = (
            f"parses {text_label} with {candidate.expression.function}, which fails the query at the "
            "first invalid row"
            if function
            else f"casts {text_label} to {type_label}, which fails the query at the first row that is not "
            f"a {type_label}"
        )
        yield CODE.warning(
            f"{candidate.owner} {action}",
            candidate.expression.span or candidate.operator.span,
            why="the batch with this row fails again after each restart, so no later row is ever read",
            fix=f"use {_suggest_call(candidate.expression)}, which returns NULL, and filter or route the rows where "
            "it does",
            edit=_build_edit(candidate.expression, facts),
            query=query.name,
        )


def _suggest_call(expression: Expression) -> str:
    """Return what returns NULL for an invalid text: the name of a function, or a call of several."""
    function = expression.function
    if function in _EPOCH_FUNCTIONS:
        arguments = ", ".join(part.text for part in expression.inputs[:2])
        return f"{function}(try_to_timestamp({arguments}))"
    return _TOLERANT_FUNCTIONS.get(function, "try_cast")


def _build_edit(expression: Expression, facts: Facts | None) -> Edit | None:
    """Replace the name of a function that has a variant with the same type."""
    if expression.function in _EPOCH_FUNCTIONS:
        return None
    new_call = f"{_suggest_call(expression)}("
    return replace_in_marked_text(facts, expression.span, f"{expression.function}(", new_call, safe=False)


def _find_failing_read(candidate: EvaluatedExpression) -> tuple[str, str, bool] | None:
    """Return a description of the text, its target type, and whether a function (not a cast) reads it."""
    expression = candidate.expression
    if not expression.inputs:
        return None
    text = expression.inputs[0]
    if get_type(text) != "string" or not (label := _describe_text(candidate, text)):
        return None
    if expression.function == "cast":
        raises = expression.settings.get("evalMode", "ANSI") == "ANSI"
        is_harmless = expression.type.startswith(_HARMLESS_TYPES)
        return (label, expression.type, False) if raises and not is_harmless else None
    if (
        expression.function in (*_TOLERANT_FUNCTIONS, *_EPOCH_FUNCTIONS)
        and expression.settings.get("failOnError", "true") == "true"
    ):
        return label, expression.type, True
    return None


def _describe_text(candidate: EvaluatedExpression, text: Expression) -> str | None:
    """Return a description of a text that comes from an unchecked column of a source, or None if it does not."""
    for part in text.walk():
        column = _find_column(part)
        if column and get_type(part) in ("string", "binary") and candidate.is_unchecked(column):
            is_whole = part is strip_casts(text) and part.function in ("column", "get_struct_field")
            return f"the text '{part.text}'" if is_whole else f"text from '{column.name}'"
    return None


def _find_column(part: Expression) -> Column | None:
    """Return the column that an expression is, or is a field, an element or a value of."""
    while part.function in _PARTS and part.inputs:
        part = part.inputs[0]
    return part.column
