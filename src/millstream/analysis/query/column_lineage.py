"""Trace a result column to the columns of a lower operator from which it is computed, by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import Aggregate, Join, StatefulFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Expression, Operator

# Nodes whose output columns are those of their input, in the same order.
_COLUMN_PRESERVING = frozenset(
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


def output_expressions(operator: Operator) -> tuple[Expression, ...] | None:
    """Return the expression of each output column; `None` if the operator computes none, or is unknown."""
    width = len(operator.columns)
    if operator.node == "Project" and len(operator.expressions) == width:
        return operator.expressions
    if isinstance(operator, Aggregate) and len(operator.expressions) >= width:
        # The grouping expressions come before the output expressions.
        return operator.expressions[len(operator.expressions) - width :]
    return None


def grouping_expressions(operator: Aggregate) -> tuple[Expression, ...]:
    """Return the expressions that an aggregation groups by."""
    return operator.expressions[: max(0, len(operator.expressions) - len(operator.columns))]


def trace_column(operator: Operator, position: int, target: Operator) -> frozenset[int] | None:
    """Return the positions of the columns of `target` from which one column of `operator` is computed.

    Return `None` if the path to `target` cannot be followed.
    """
    if operator is target:
        return frozenset({position})
    if isinstance(operator, StatefulFunction) or position >= len(operator.columns):
        return None
    if (computed := _computing_expressions(operator, position)) is not None:
        positions: set[int] = set()
        for expression in computed:
            for input_position in list_read_positions(operator.inputs[0], expression):
                inner_positions = trace_column(operator.inputs[0], input_position, target)
                if inner_positions is None:
                    return None
                positions |= inner_positions
        return frozenset(positions)
    if operator.node in _COLUMN_PRESERVING and len(operator.inputs) == 1:
        return trace_column(operator.inputs[0], position, target)
    if operator.node == "Generate" and position < len(operator.inputs[0].columns):
        return trace_column(operator.inputs[0], position, target)
    if isinstance(operator, Join) and len(operator.inputs) == 2:
        left, right = operator.inputs
        is_left = position < len(left.columns)
        side, side_position = (left, position) if is_left else (right, position - len(left.columns))
        return (
            trace_column(side, side_position, target)
            if any(node is target for node in side.walk())
            else frozenset()
        )
    return None


def _computing_expressions(operator: Operator, position: int) -> tuple[Expression, ...] | None:
    """Return the expressions that compute one column; `None` if the operator computes none, or is unknown."""
    if operator.node == "Expand":
        # It makes several rows of each one, as for a sliding window, and has the expressions of one after another.
        width = len(operator.columns)
        return operator.expressions[position::width] if operator.expressions else None
    expressions = output_expressions(operator)
    return None if expressions is None else (expressions[position],)


def list_read_positions(below: Operator, expression: Expression) -> Iterator[int]:
    """Yield the positions of the input operator's columns that an expression reads."""
    for node in expression.walk():
        if node.column is not None:
            for position, column in enumerate(below.columns):
                if column == node.column:
                    yield position
                    break
