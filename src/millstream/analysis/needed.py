"""Which columns an operator needs of those below it, after Spark has left out what nobody uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Deduplicate

if TYPE_CHECKING:
    from datetime import timedelta

    from millstream.analysis.dataflow import Column, Expression, Operator

Known = tuple[str, "timedelta | None", frozenset[tuple[str, str]]]


def needed(root: Operator, target: Operator) -> list[list[Column]]:
    """For each input of `target` its columns that a plan under `root` uses, by the operator itself or above it.

    Columns that agree in name, source and watermark cannot be told apart: they count once, and not at all where
    several inputs have them.
    """
    found = _down(root, {_known(column) for column in root.columns}, target)
    return found if found is not None else [list(side.columns) for side in target.inputs]


def _down(operator: Operator, wanted: set[Known], target: Operator) -> list[list[Column]] | None:
    wanted = _of_inputs(operator, wanted)
    if operator is target:
        shared = _shared(operator)
        return [
            list({_known(c): c for c in side.columns if _known(c) in wanted - shared}.values())
            for side in operator.inputs
        ]
    for side in operator.inputs:
        found = _down(side, _renamed(operator, side, wanted), target)
        if found is not None:
            return found
    return None


def _shared(operator: Operator) -> set[Known]:
    """What more than one input has."""
    sides = [{_known(column) for column in side.columns} for side in operator.inputs]
    return {known for known in set().union(*sides) if sum(known in side for side in sides) > 1}


def _of_inputs(operator: Operator, wanted: set[Known]) -> set[Known]:
    """What an operator needs of its inputs for `wanted` of its columns."""
    if operator.node == "Project":
        made = zip(operator.columns, operator.expressions, strict=False)
        return {known for column, one in made if _known(column) in wanted for known in _leaves(one)}
    own = {known for one in operator.expressions for known in _leaves(one)}
    if isinstance(operator, Aggregate):
        return own
    if isinstance(operator, Deduplicate) and operator.within_watermark:
        # Spark leaves nothing out below it.
        return {_known(column) for side in operator.inputs for column in side.columns}
    keys = {_known(key) for key in operator.keys} if isinstance(operator, Deduplicate) else set()
    return wanted | own | keys


def _renamed(operator: Operator, side: Operator, wanted: set[Known]) -> set[Known]:
    """The same columns as the input calls them: a union takes those of its later inputs by their place."""
    if operator.node != "Union":
        return wanted
    pairs = zip(operator.columns, side.columns, strict=False)
    return {_known(inside) for outside, inside in pairs if _known(outside) in wanted}


def _leaves(expression: Expression) -> set[Known]:
    return {_known(one.column) for one in expression.walk() if one.column}


def _known(column: Column) -> Known:
    return column.name.lower(), column.delay, column.origins
