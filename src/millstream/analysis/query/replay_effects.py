"""Find the effects of nondeterministic expressions when a batch runs again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.analysis.query.column_lineage import trace_column
from millstream.analysis.query.event_time import walk_below
from millstream.analysis.query.nondeterminism import selects_rows
from millstream.analysis.query.plan_model import (
    Aggregate,
    Deduplicate,
    Join,
    Stability,
    StatefulFunction,
    StatefulOperator,
    VolatileExpression,
)
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.analysis.query.plan_model import Column, Expression, Operator, PlannedQuery
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Span


class ReplayImpact(StrEnum):
    """The effect of a value that changes in a replay, from the worst."""

    STATE = "state"
    """In the state of an operator."""
    KEY = "key"
    """In the columns by which a sink identifies a row."""
    ROUTE = "route"
    """In the columns that decide where a sink stores a row."""
    FILTER = "filter"
    """In the choice of rows."""
    PAYLOAD = "payload"
    """In a column that is written."""


@dataclass(frozen=True)
class VolatileFlow:
    """A volatile expression and its worst effect."""

    volatile: VolatileExpression
    impact: ReplayImpact
    into: str
    """A description of the affected part: `the key of postgres purchases`."""
    span: Span | None
    """The position of the expression, or the nearest known one."""


def find_volatile_flows(query: PlannedQuery, *stabilities: Stability) -> list[VolatileFlow]:
    """List each volatile expression of these stabilities once, with its worst effect."""
    flows_by_expression: dict[tuple[str, str, Span | None], VolatileFlow] = {}
    for flow in _list_flows(query, frozenset(stabilities)):
        flows_by_expression.setdefault((flow.volatile.function, flow.volatile.text, flow.span), flow)
    return list(flows_by_expression.values())


def shorten_paths(into: str, facts: Facts | None) -> str:
    """Return the description with paths relative to the spec's folder."""
    return into.replace(f"{facts.pipeline.folder}/", "") if facts else into


def guarantees_replay(query: PlannedQuery, facts: Facts | None) -> bool:
    """Return whether a sink guarantees that a repeated batch changes nothing; `False` if unknown."""
    guarantees = (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)
    return any(guarantee in guarantees for guarantee in list_sink_guarantees(query, facts))


def list_sink_guarantees(query: PlannedQuery, facts: Facts | None) -> list[Guarantee]:
    """Return the guarantee of each sink of a query; empty for a script, whose sinks are unknown."""
    if facts is None or query.name not in facts.pipeline.queries:
        return []
    entries = facts.pipeline.queries[query.name].to
    return [entry.sink.guarantee(query.output_mode)[0] for entry in entries]


def _list_flows(query: PlannedQuery, stabilities: frozenset[Stability]) -> Iterator[VolatileFlow]:
    for stateful in query.of(StatefulOperator):
        if isinstance(stateful, Join) and not stateful.is_stream_stream:
            continue
        for volatile in _list_state_inputs(stateful):
            if volatile.stability in stabilities:
                yield VolatileFlow(
                    volatile,
                    ReplayImpact.STATE,
                    f"the state of {_name_operator(stateful)}",
                    volatile.span or stateful.span,
                )
    # A condition affects every column above it; report the condition itself, and first.
    for operator in query.walk():
        if selects_rows(operator):
            for volatile in _list_volatile(operator.expressions):
                if volatile.stability in stabilities and not _is_in_key(query, volatile):
                    yield VolatileFlow(
                        volatile, ReplayImpact.FILTER, "the choice of rows", volatile.span or operator.span
                    )
    for impact, into, column, span in _list_written_columns(query):
        for volatile in column.volatile:
            if volatile.stability in stabilities:
                yield VolatileFlow(volatile, impact, into, volatile.span or span)


def _is_in_key(query: PlannedQuery, volatile: VolatileExpression) -> bool:
    """Return whether the key of a sink contains a value that also decides which rows are selected.

    Columns above a condition carry its values in any case, so those below its lowest use are compared.
    """
    conditions = [
        operator
        for operator in query.walk()
        if selects_rows(operator) and volatile in _list_volatile(operator.expressions)
    ]
    lowest = [
        operator
        for operator in conditions
        if not any(below is other for below in walk_below(operator) for other in conditions)
    ]
    names = [column.name.lower() for column in query.root.columns]
    positions = {
        names.index(name.lower()) for sink in query.sinks for name in sink.key if name.lower() in names
    }
    return any(
        volatile in side.columns[traced].volatile
        for operator in lowest
        for side in operator.inputs
        for position in positions
        for traced in trace_column(query.root, position, side) or ()
    )


def _list_written_columns(query: PlannedQuery) -> Iterator[tuple[ReplayImpact, str, Column, Span | None]]:
    """Yield the columns that sinks write, each with its effect there."""
    for impact, description in (
        (ReplayImpact.KEY, "the key of"),
        (ReplayImpact.ROUTE, "the location of a row in"),
    ):
        for sink in query.sinks:
            for name in sink.key if impact is ReplayImpact.KEY else sink.routed_by:
                if column := query.root.column(name):
                    yield impact, f"{description} {sink.name}", column, sink.span
    for column in query.root.columns:
        yield ReplayImpact.PAYLOAD, f"column '{column.name}'", column, query.root.span or query.span


def _list_state_inputs(operator: StatefulOperator) -> Iterator[VolatileExpression]:
    """Yield the volatile expressions in the rows that an operator stores, or in the choice of those rows."""
    if isinstance(operator, Aggregate):
        yield from _list_column_volatile(operator.keys)
        yield from _list_volatile(operator.functions)
    elif isinstance(operator, Deduplicate):
        yield from _list_column_volatile(operator.keys)
    elif isinstance(operator, Join | StatefulFunction):
        yield from _list_column_volatile(column for side in operator.inputs for column in side.columns)
    for child in operator.walk():
        if selects_rows(child):
            yield from _list_volatile(child.expressions)


def _list_volatile(expressions: Iterable[Expression]) -> Iterator[VolatileExpression]:
    for expression in expressions:
        for node in expression.walk():
            if node.column:
                yield from node.column.volatile
            elif node.stability is not Stability.STABLE:
                yield VolatileExpression(node.function, node.text, node.stability, node.span)


def _list_column_volatile(columns: Iterable[Column]) -> Iterator[VolatileExpression]:
    return (volatile for column in columns for volatile in column.volatile)


def _name_operator(operator: Operator) -> str:
    match operator:
        case Aggregate():
            return "an aggregation"
        case Deduplicate():
            return "a deduplication"
        case Join():
            return "a stream-stream join"
        case _:
            return "a stateful function"
