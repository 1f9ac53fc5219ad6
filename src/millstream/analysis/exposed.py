"""Where a query's own expressions meet rows from outside unguarded, so that one row can end a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, Expression, Operator, PlannedQuery
    from millstream.analysis.facts import Facts

# What comes after the first argument is worked out for some rows only: those that the condition lets through.
_CONDITIONAL = frozenset({"case", "if", "nvl2", "coalesce", "nvl", "if_null"})
_DECODES = frozenset({"from_json", "from_csv", "get_json_object"})
_ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class Exposed:
    """An expression that is worked out for every row that reaches its operator."""

    expression: Expression
    operator: Operator
    checked: frozenset[tuple[str, str]]
    """Columns that a condition has looked at before: (source, column), or ("", name) of one decoded here."""
    decoded: frozenset[str] = frozenset()
    """Names of columns that the query takes out of messages by itself."""

    @property
    def owner(self) -> str:
        """`view 'sums'`, or `the query` in a script."""
        return f"view '{self.operator.view}'" if self.operator.view else "the query"

    def raw(self, expression: Expression) -> Column | None:
        """The first column in an expression that is a source's own, unchanged and looked at by no condition."""
        return next((column for column in leaves(expression) if self.unchecked(column)), None)

    def unchecked(self, column: Column) -> bool:
        """Is it as it came from outside, and has no condition looked at it?"""
        if column.copied:
            return bool(column.origins) and not column.origins & self.checked
        return column.name in self.decoded and ("", column.name) not in self.checked


def exposed(query: PlannedQuery, facts: Facts | None) -> Iterator[Exposed]:
    """The expressions of a query's own operators on streams, each once; none where ANSI mode is off.

    What Millstream adds to a source, decoding above all, belongs to no view and is left out. A view that several
    queries share is told for the first of them.
    """
    if query.spark.get(_ANSI, "true").lower() == "false":
        return
    decoded = _decoded(query)
    for operator in query.walk():
        if not operator.streaming or not _owned(operator, query, facts):
            continue
        checked = _checked(operator)
        for expression in operator.expressions:
            for one in _always(expression):
                yield Exposed(one, operator, checked, decoded)


def leaves(expression: Expression) -> Iterator[Column]:
    """The columns that an expression reads."""
    return (one.column for one in expression.walk() if one.column is not None)


def bare(expression: Expression) -> Expression:
    """What casts are made of, without them."""
    while expression.function in ("cast", "alias", "known_nullable") and expression.inputs:
        expression = expression.inputs[0]
    return expression


def type_of(expression: Expression) -> str:
    """Its type, in Spark's DDL; empty where the plan does not say."""
    return expression.type or (expression.column.type if expression.column else "")


def _owned(operator: Operator, query: PlannedQuery, facts: Facts | None) -> bool:
    """Did the user write it, and is it this query's to tell?"""
    if facts is None:
        return True
    return operator.view is not None and facts.query_of(operator.view) in (None, query.name)


def _always(expression: Expression) -> Iterator[Expression]:
    """An expression and those below it that are worked out whatever the row; none that tolerates its failures."""
    if expression.function.startswith("try_"):
        return
    yield expression
    inputs = expression.inputs[:1] if expression.function in _CONDITIONAL else expression.inputs
    for one in inputs:
        yield from _always(one)


def _checked(operator: Operator) -> frozenset[tuple[str, str]]:
    """Columns that a filter at or below an operator compares with something; that a value is there says little."""
    return frozenset(
        origin
        for below in operator.walk()
        if below.node == "Filter"
        for condition in below.expressions
        for column in _compared(condition)
        for origin in (column.origins if column.copied else {("", column.name)})
    )


def _decoded(query: PlannedQuery) -> frozenset[str]:
    """The names under which parts of a decoded message go on, by name alone."""
    names: set[str] = set()
    for operator in reversed(list(query.walk())):
        for expression in operator.expressions:
            if expression.function != "alias" or not expression.inputs:
                continue
            part = expression.inputs[0]
            while part.function in ("get_struct_field", "alias") and part.inputs:
                part = part.inputs[0]
            known = part.column is not None and not part.column.copied and part.column.name in names
            if known or part.function in _DECODES:
                names.add(expression.settings.get("name", ""))
    return frozenset(names - {""})


def _compared(condition: Expression) -> Iterator[Column]:
    """The columns that a condition looks at, and not merely uses: neither their absence nor what fails itself."""
    if condition.column is not None:
        yield condition.column
    for one in _looked_at(condition):
        yield from _compared(one)


def _looked_at(condition: Expression) -> tuple[Expression, ...]:
    """The inputs of an expression without those that would end the query before it could say anything."""
    inputs = condition.inputs
    match condition.function:
        case "is_not_null" | "is_null" if inputs and inputs[0].column is not None:
            return ()
        case "cast" if (
            inputs and type_of(inputs[0]) == "string" and condition.settings.get("evalMode") != "TRY"
        ):
            return ()
        case "divide" | "integral_divide" | "remainder" | "pmod":
            return inputs[:1]
        case "get_array_item" | "element_at":
            return ()
        case _:
            return inputs
