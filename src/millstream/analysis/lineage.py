"""Which columns of an operator lower in a plan a column of the result is made of, by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Join, StatefulFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Expression, Operator

# Nodes that give the columns below them as they are, in the same order.
_PASS = frozenset(
    {
        "Filter",
        "EventTimeWatermark",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "GlobalLimit",
        "LocalLimit",
        "Sort",
        "Repartition",
        "RepartitionByExpression",
        "CollectMetrics",
    }
)


def outputs(operator: Operator) -> tuple[Expression, ...] | None:
    """The expression of each column that an operator makes; None where it makes none, or is not understood."""
    width = len(operator.columns)
    if operator.node == "Project" and len(operator.expressions) == width:
        return operator.expressions
    if isinstance(operator, Aggregate) and len(operator.expressions) >= width:
        # What it groups by stands before what it gives.
        return operator.expressions[len(operator.expressions) - width :]
    return None


def grouping(operator: Aggregate) -> tuple[Expression, ...]:
    """The expressions that an aggregation groups by."""
    return operator.expressions[: max(0, len(operator.expressions) - len(operator.columns))]


def made_of(operator: Operator, position: int, target: Operator) -> frozenset[int] | None:
    """The positions of the columns of `target` that one column of `operator` is made of.

    None where the way to it cannot be followed.
    """
    if operator is target:
        return frozenset({position})
    if isinstance(operator, StatefulFunction) or position >= len(operator.columns):
        return None
    if (made := outputs(operator)) is not None:
        found: set[int] = set()
        for below in leaves(operator.inputs[0], made[position]):
            deeper = made_of(operator.inputs[0], below, target)
            if deeper is None:
                return None
            found |= deeper
        return frozenset(found)
    if operator.node in _PASS and len(operator.inputs) == 1:
        return made_of(operator.inputs[0], position, target)
    if operator.node == "Generate" and position < len(operator.inputs[0].columns):
        return made_of(operator.inputs[0], position, target)
    if isinstance(operator, Join) and len(operator.inputs) == 2:
        left, right = operator.inputs
        inside = position < len(left.columns)
        side, place = (left, position) if inside else (right, position - len(left.columns))
        return made_of(side, place, target) if any(one is target for one in side.walk()) else frozenset()
    return None


def leaves(below: Operator, expression: Expression) -> Iterator[int]:
    """The positions of the columns of the operator below that an expression reads."""
    for node in expression.walk():
        if node.column is not None:
            for position, column in enumerate(below.columns):
                if column == node.column:
                    yield position
                    break
