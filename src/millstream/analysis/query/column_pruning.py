"""Find the input columns that an operator needs after Spark has pruned unused columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Aggregate, Deduplicate, Join

if TYPE_CHECKING:
    from datetime import timedelta

    from millstream.analysis.query.plan_model import Column, Expression, Operator

Known = tuple[str, "timedelta | None", frozenset[tuple[str, str]]]


def find_used_columns(root: Operator, target: Operator) -> list[list[Column]]:
    """Return, for each input of `target`, the columns that `target` or the plan above it uses.

    Columns with the same name, origin and watermark cannot be distinguished: they count once, and not at all if
    several inputs have them, unless a join compares them with each other.
    """
    columns_used = _find_used_columns(root, {_build_key(column) for column in root.columns}, target)
    return columns_used if columns_used is not None else [list(side.columns) for side in target.inputs]


def list_needed_expressions(root: Operator, target: Operator) -> list[Expression]:
    """Return the expressions of an operator that Spark evaluates, without columns that nothing above reads."""
    needed_keys = _find_needed_outputs(root, {_build_key(column) for column in root.columns}, target)
    is_projection = target.node == "Project" and len(target.columns) == len(target.expressions)
    if not is_projection or needed_keys is None:
        return list(target.expressions)
    pairs = zip(target.columns, target.expressions, strict=False)
    return [expression for column, expression in pairs if _build_key(column) in needed_keys]


def _find_needed_outputs(operator: Operator, needed_keys: set[Known], target: Operator) -> set[Known] | None:
    if operator is target:
        return needed_keys
    input_keys = _find_input_keys(operator, needed_keys)
    keys_by_side = (
        _find_needed_outputs(side, _map_to_input(operator, side, input_keys), target)
        for side in operator.inputs
    )
    return next((keys for keys in keys_by_side if keys is not None), None)


def _find_used_columns(
    operator: Operator, needed_keys: set[Known], target: Operator
) -> list[list[Column]] | None:
    needed_keys = _find_input_keys(operator, needed_keys)
    if operator is target:
        shared_keys = _find_shared_keys(operator)
        return [
            list(
                {
                    _build_key(column): column
                    for column in side.columns
                    if _build_key(column) in needed_keys - shared_keys
                }.values()
            )
            for side in operator.inputs
        ]
    for side in operator.inputs:
        columns_used = _find_used_columns(side, _map_to_input(operator, side, needed_keys), target)
        if columns_used is not None:
            return columns_used
    return None


def _find_shared_keys(operator: Operator) -> set[Known]:
    """Return the keys of columns that more than one input has, so that it is not known which of them is read."""
    sides = [{_build_key(column) for column in side.columns} for side in operator.inputs]
    pairs = operator.keys if isinstance(operator, Join) else ()
    keys_of_both = {_build_key(left) for left, right in pairs if _build_key(left) == _build_key(right)}
    return {key for key in set().union(*sides) if sum(key in side for side in sides) > 1} - keys_of_both


def _find_input_keys(operator: Operator, needed_keys: set[Known]) -> set[Known]:
    """Return the input columns that an operator needs to compute the needed output columns."""
    if operator.node == "Project":
        pairs = zip(operator.columns, operator.expressions, strict=False)
        return {
            column_key
            for column, expression in pairs
            if _build_key(column) in needed_keys
            for column_key in _list_read_keys(expression)
        }
    own_keys = {
        column_key for expression in operator.expressions for column_key in _list_read_keys(expression)
    }
    if isinstance(operator, Aggregate):
        return own_keys
    if isinstance(operator, Deduplicate) and operator.is_within_watermark:
        # Spark prunes no column below such a deduplication.
        return {_build_key(column) for side in operator.inputs for column in side.columns}
    keys = {_build_key(key) for key in operator.keys} if isinstance(operator, Deduplicate) else set()
    return needed_keys | own_keys | keys


def _map_to_input(operator: Operator, side: Operator, needed_keys: set[Known]) -> set[Known]:
    """Return the same columns under the input's names, because a union matches its inputs by position."""
    if operator.node != "Union":
        return needed_keys
    pairs = zip(operator.columns, side.columns, strict=False)
    return {
        _build_key(input_column)
        for output_column, input_column in pairs
        if _build_key(output_column) in needed_keys
    }


def _list_read_keys(expression: Expression) -> set[Known]:
    return {_build_key(node.column) for node in expression.walk() if node.column}


def _build_key(column: Column) -> Known:
    return column.name.lower(), column.delay, column.origins
