"""Find expressions over unchecked source rows, where one row can fail a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.query.column_pruning import list_needed_expressions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, Expression, Operator, PlannedQuery
    from millstream.analysis.rule_context import Facts

# The arguments after the first one are evaluated only for rows that match the condition.
_CONDITIONAL = frozenset({"case", "if", "nvl2", "coalesce", "nvl", "if_null"})
_DECODERS = frozenset({"from_json", "from_csv", "get_json_object"})
_ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class EvaluatedExpression:
    """An expression that is evaluated for every row that reaches its operator."""

    expression: Expression
    operator: Operator
    checked: frozenset[tuple[str, str]]
    """Columns that a condition has checked before: (source, column), or ("", name) of a decoded column."""
    decoded: frozenset[str] = frozenset()
    """Names of columns that the query itself decodes from messages."""
    texts: frozenset[str] = frozenset()
    """Names of columns with the text of a message's bytes."""

    @property
    def owner(self) -> str:
        """Name the view, `view 'sums'`, or `the query` in a script."""
        return f"view '{self.operator.view}'" if self.operator.view else "the query"

    def raw(self, expression: Expression) -> Column | None:
        """Return the first unchanged source column in an expression that no condition checks."""
        return next((column for column in list_columns(expression) if self.is_unchecked(column)), None)

    def is_unchecked(self, column: Column) -> bool:
        """Return whether a column is unchanged from the source and no condition checks it."""
        if column.is_copied:
            return bool(column.origins) and not column.origins & self.checked
        is_checked = ("", column.name) in self.checked or bool(column.origins & self.checked)
        is_text = column.name in self.texts and column.type == "string" and bool(column.origins)
        return (is_text or column.name in self.decoded) and not is_checked


def find_exposed(query: PlannedQuery, facts: Facts | None) -> Iterator[EvaluatedExpression]:
    """Yield the expressions of a query's streaming operators, each once.

    Operators that Millstream adds to a source, such as decoding, belong to no view and are skipped. A view that
    several queries share is checked for the first of them.
    """
    decoded, texts = _list_decoded_names(query), _list_text_names(query)
    for operator in query.walk():
        if not operator.is_streaming or not _belongs_to_user(operator, query, facts):
            continue
        checked = _list_checked_columns(operator)
        for expression in list_needed_expressions(query.root, operator):
            for node in _list_unconditional(expression):
                yield EvaluatedExpression(node, operator, checked, decoded, texts)


def find_throwing(query: PlannedQuery, facts: Facts | None) -> Iterator[EvaluatedExpression]:
    """Yield what `find_exposed` yields; nothing if ANSI mode is off, in which a failing expression is NULL."""
    if query.spark.get(_ANSI, "true").lower() != "false":
        yield from find_exposed(query, facts)


def list_columns(expression: Expression) -> Iterator[Column]:
    """Yield the columns that an expression reads."""
    return (node.column for node in expression.walk() if node.column is not None)


def strip_casts(expression: Expression) -> Expression:
    """Return an expression without the casts and aliases around it."""
    while expression.function in ("cast", "alias", "known_nullable") and expression.inputs:
        expression = expression.inputs[0]
    return expression


def get_type(expression: Expression) -> str:
    """Return the type of an expression in Spark's DDL; empty if unknown."""
    return expression.type or (expression.column.type if expression.column else "")


def _belongs_to_user(operator: Operator, query: PlannedQuery, facts: Facts | None) -> bool:
    """Return whether the user wrote the operator, and whether this query reports it."""
    if facts is None:
        return True
    return operator.view is not None and facts.query_of(operator.view) in (None, query.name)


def _list_unconditional(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and its inputs that are evaluated for every row, except `try_` functions."""
    if expression.function.startswith("try_"):
        return
    yield expression
    inputs = expression.inputs[:1] if expression.function in _CONDITIONAL else expression.inputs
    for child in inputs:
        yield from _list_unconditional(child)


def _list_checked_columns(operator: Operator) -> frozenset[tuple[str, str]]:
    """Return the columns that a filter at or below an operator compares; a NULL check alone does not count."""
    return frozenset(
        origin
        for below in operator.walk()
        if below.node == "Filter"
        for condition in below.expressions
        for column in _list_compared_columns(condition)
        for origin in (column.origins if column.is_copied else {("", column.name)})
    )


def _list_decoded_names(query: PlannedQuery) -> frozenset[str]:
    """Return the column names of the parts of a decoded message."""
    names: set[str] = set()
    for operator in reversed(list(query.walk())):
        for expression in operator.expressions:
            if expression.function != "alias" or not expression.inputs:
                continue
            child = expression.inputs[0]
            while child.function in ("get_struct_field", "alias") and child.inputs:
                child = child.inputs[0]
            is_decoded = (
                child.column is not None and not child.column.is_copied and child.column.name in names
            )
            if is_decoded or child.function in _DECODERS:
                names.add(expression.settings.get("name", ""))
    return frozenset(names - {""})


def _list_text_names(query: PlannedQuery) -> frozenset[str]:
    """Return the column names of the text of a message's bytes, which one select makes and a later one reads."""
    names: set[str] = set()
    for operator in reversed(list(query.walk())):
        for expression in operator.expressions:
            child = expression.inputs[0] if expression.function == "alias" and expression.inputs else None
            if child is not None and (
                _is_text_of_bytes(child) or (child.column is not None and child.column.name in names)
            ):
                names.add(expression.settings.get("name", ""))
    return frozenset(names - {""})


def _is_text_of_bytes(expression: Expression) -> bool:
    """Return whether an expression casts the bytes of a source to text: the text is what the source has."""
    column = expression.inputs[0].column if expression.inputs else None
    is_bytes = column is not None and column.is_copied and column.type == "binary"
    return is_bytes and expression.function == "cast" and get_type(expression) == "string"


def _list_compared_columns(condition: Expression) -> Iterator[Column]:
    """Yield the columns that a condition checks; NULL checks and expressions that may fail do not count."""
    if condition.column is not None:
        yield condition.column
    for child in _list_checked_inputs(condition):
        yield from _list_compared_columns(child)


def _list_checked_inputs(condition: Expression) -> tuple[Expression, ...]:
    """Return the inputs of an expression, except those that would fail before the check."""
    inputs = condition.inputs
    match condition.function:
        case "is_not_null" | "is_null" if inputs and inputs[0].column is not None:
            return ()
        case "cast" if (
            inputs and get_type(inputs[0]) == "string" and condition.settings.get("evalMode") != "TRY"
        ):
            return ()
        case "divide" | "integral_divide" | "remainder" | "pmod":
            return inputs[:1]
        case "get_array_item" | "element_at":
            return ()
        case _:
            return inputs
