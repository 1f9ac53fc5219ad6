"""Find what the nondeterministic expressions of a query affect: values, the choice of rows and keys, or state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Join,
    Read,
    Stability,
    StatefulFunction,
    StatefulOperator,
    VolatileExpression,
    WatermarkOperator,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.analysis.query.plan_model import Column, Expression, Operator, PlannedQuery, PlannedSink

UNSTABLE = frozenset({Stability.UNSTABLE, Stability.PARTITION})
"""Stabilities that certainly give other values when a batch runs again."""


class ReplayEffect(StrEnum):
    """The effect of nondeterministic values, from the safest to the worst."""

    NOTHING = "nothing"
    """There are none, or none that is written."""
    VALUES = "values"
    """In written columns that decide nothing."""
    ROWS = "rows"
    """In the choice of rows, in a sink's key, or in the target of a row."""
    STATE = "state"
    """In the state of an operator."""


@dataclass(frozen=True)
class NondeterminismImpact:
    """A nondeterministic expression, and what it affects."""

    reach: ReplayEffect
    cause: VolatileExpression
    operator: Operator | None = None
    """The operator whose state or choice of rows is affected."""
    column: str = ""
    """The written column that is affected, if any."""


def find_impacts(query: PlannedQuery, sink: PlannedSink | None = None) -> list[NondeterminismImpact]:
    """List the effects of nondeterministic expressions on one sink, the worst first."""
    impacts = list(_find_impacts_inside(query.root, None))
    deciding_names = {name.lower() for name in (*sink.key, *sink.routed_by)} if sink else set()
    for column in query.root.columns:
        reach = ReplayEffect.ROWS if column.name.lower() in deciding_names else ReplayEffect.VALUES
        impacts += [
            NondeterminismImpact(reach, cause, None, column.name) for cause in _keep_unstable(column.volatile)
        ]
    order = list(ReplayEffect)
    return sorted(impacts, key=lambda impact: -order.index(impact.reach))


def list_assumed(query: PlannedQuery) -> list[VolatileExpression]:
    """List user functions, which Spark cannot classify, and values that depend on the order of rows."""
    causes: dict[tuple[str, Stability], VolatileExpression] = {}
    for operator in query.walk():
        column_causes = [cause for column in operator.columns for cause in column.volatile]
        for cause in (*column_causes, *_list_own_causes(operator)):
            if cause.stability in (Stability.UNKNOWN, Stability.ORDER):
                causes.setdefault((cause.function, cause.stability), cause)
    return list(causes.values())


def _find_impacts_inside(
    operator: Operator, stateful: StatefulOperator | None
) -> Iterator[NondeterminismImpact]:
    """Yield the effects inside the plan; `stateful` is the nearest stateful operator above."""
    if is_stateful(operator):
        assert isinstance(operator, StatefulOperator)
        for cause in _keep_unstable(_list_state_causes(operator)):
            yield NondeterminismImpact(ReplayEffect.STATE, cause, operator)
        stateful = operator
    elif selects_rows(operator) or (operator.node == "Generate" and operator.is_streaming):
        for cause in _keep_unstable(_list_expression_causes(operator.expressions)):
            yield NondeterminismImpact(
                ReplayEffect.STATE if stateful else ReplayEffect.ROWS, cause, stateful or operator
            )
    elif isinstance(operator, WatermarkOperator) and stateful:
        event_time_column = operator.column(operator.event_time)
        for cause in _keep_unstable(event_time_column.volatile if event_time_column else ()):
            yield NondeterminismImpact(ReplayEffect.STATE, cause, stateful)
    for child in operator.inputs:
        yield from _find_impacts_inside(child, stateful)


def is_stateful(operator: Operator) -> bool:
    """Return whether an operator keeps state between batches."""
    if isinstance(operator, Join):
        return operator.is_stream_stream
    return isinstance(operator, StatefulOperator) and operator.is_streaming


def selects_rows(operator: Operator) -> bool:
    """Return whether an operator has no state, and a condition decides which rows it outputs.

    The operator may be below a static table: each batch reads the table, and so its condition, again.
    """
    return operator.node == "Filter" or (isinstance(operator, Join) and not operator.is_stream_stream)


def _list_state_causes(operator: StatefulOperator) -> Iterator[VolatileExpression]:
    """Yield the volatile expressions that affect an operator's state."""
    match operator:
        case Aggregate():
            yield from _list_column_causes(operator.keys)
            yield from _list_expression_causes((*operator.functions, *operator.expressions))
        case Deduplicate():
            yield from _list_column_causes(operator.keys)
        case Join():
            yield from _list_column_causes(column for side in operator.inputs for column in side.columns)
            yield from _list_expression_causes(operator.expressions)
        case StatefulFunction():
            yield from _list_column_causes(column for side in operator.inputs for column in side.columns)
        case _:
            yield from _list_expression_causes(operator.expressions)


def _list_own_causes(operator: Operator) -> Iterator[VolatileExpression]:
    """Yield the volatile expressions of an operator, and its user function."""
    yield from _list_expression_causes(operator.expressions)
    if isinstance(operator, StatefulFunction | BatchFunction) and not isinstance(operator, Read):
        yield VolatileExpression(operator.function, operator.function, Stability.UNKNOWN, operator.span)


def _list_expression_causes(expressions: Iterable[Expression]) -> Iterator[VolatileExpression]:
    """Yield the volatile columns that expressions read, and their own volatile functions."""
    for expression in expressions:
        for node in expression.walk():
            if node.column is not None:
                yield from node.column.volatile
            elif node.stability is not Stability.STABLE:
                yield VolatileExpression(_find_name(node), node.text, node.stability, node.span)


def _find_name(node: Expression) -> str:
    """Return a function's name; for a user function it is part of the text."""
    is_user_function = node.function.endswith(("_udf", "_udtf"))
    return node.text.partition("(")[0].lower() if is_user_function else node.function


def _list_column_causes(columns: Iterable[Column]) -> Iterator[VolatileExpression]:
    for column in columns:
        yield from column.volatile


def _keep_unstable(causes: Iterable[VolatileExpression]) -> list[VolatileExpression]:
    return [cause for cause in dict.fromkeys(causes) if cause.stability in UNSTABLE]
