"""Find filters, joins and explodes that drop the row of an invalid message, in which each decoded column is NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Aggregate, Join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from millstream.analysis.query.plan_model import Expression, Operator, PlannedQuery

_DECODERS = frozenset({"from_json", "from_csv", "from_avro", "get_json_object"})
# Conditions that are NULL, and so do not hold, if what they compare is NULL.
_COMPARISONS = frozenset(
    {"equal_to", "greater_than", "greater_than_or_equal", "less_than", "less_than_or_equal", "in", "in_set"}
    | {"like", "ilike", "rlike", "contains", "starts_with", "ends_with", "array_contains"}
)
# Functions with a result that is not NULL for an input that is, or whose result is not known.
_NULL_SAFE = frozenset(
    {"coalesce", "nvl", "nvl2", "if_null", "if", "case", "is_null", "is_not_null", "equal_null_safe"}
    | {"named_struct", "array", "map", "concat_ws", "to_json", "hash", "murmur3_hash", "xx_hash64"}
    | {"python_udf", "scala_udf", "and", "or", "greatest", "least"}
)
_EXPLODES = frozenset({"explode", "posexplode", "inline"})


def drops_undecoded(query: PlannedQuery, operators: Iterable[Operator]) -> bool:
    """Return whether one of these operators of a query drops each row whose message it cannot decode."""
    names = _list_decoded_names(query)
    return any(_drops(operator, names) for operator in operators)


def _drops(operator: Operator, names: Collection[str]) -> bool:
    """Return whether an operator drops the rows in which the columns of these names are NULL."""
    if isinstance(operator, Join):
        condition = operator.condition
        return (
            operator.how in ("inner", "left_semi")
            and condition is not None
            and _rejects_null(condition, names)
        )
    if operator.node == "Filter":
        return any(_rejects_null(condition, names) for condition in operator.expressions)
    return (
        operator.node == "Generate"
        and ", false, " in operator.text
        and any(
            expression.function in _EXPLODES and any(_is_null(child, names) for child in expression.inputs)
            for expression in operator.expressions
        )
    )


def _rejects_null(condition: Expression, names: Collection[str]) -> bool:
    """Return whether a condition does not hold if the columns of these names are NULL."""
    match condition.function:
        case "and":
            return any(_rejects_null(child, names) for child in condition.inputs)
        case "or":
            return all(_rejects_null(child, names) for child in condition.inputs)
        case "not":
            return any(
                child.function in _COMPARISONS | {"column"} and _rejects_null(child, names)
                for child in condition.inputs
            )
        case "is_not_null" | "at_least_n_non_nulls":
            return any(_is_null(child, names) for child in condition.inputs)
        case function:
            return (function in _COMPARISONS or condition.column is not None) and _is_null(condition, names)


def _is_null(expression: Expression, names: Collection[str]) -> bool:
    """Return whether an expression is NULL if the columns of these names are."""
    if expression.function in _DECODERS:
        return True
    if expression.column is not None:
        return not expression.column.is_copied and expression.column.name in names
    return expression.function not in _NULL_SAFE and any(
        _is_null(child, names) for child in expression.inputs
    )


def _has_null_elements(explode: Expression, names: Collection[str]) -> bool:
    """Return whether each element of an array that is written out is NULL if the columns of these names are."""
    return any(
        array.function == "array"
        and bool(array.inputs)
        and all(_is_null(child, names) for child in array.inputs)
        for array in explode.inputs
    )


def _list_decoded_names(query: PlannedQuery) -> frozenset[str]:
    """Return the names of columns that are NULL in the row of an invalid message."""
    names: set[str] = set()
    for operator in reversed(list(query.walk())):
        if isinstance(operator, Aggregate):
            # A count is not NULL.
            continue
        for expression in operator.expressions:
            if expression.function in _EXPLODES and _has_null_elements(expression, names):
                inner = {column.name for child in operator.inputs for column in child.columns}
                names |= {column.name for column in operator.columns} - inner
            if expression.function != "alias" or not expression.inputs:
                continue
            name = expression.settings.get("name", "")
            if _is_null(expression.inputs[0], names):
                names.add(name)
    return frozenset(names - {""})
