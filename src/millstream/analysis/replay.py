"""What a batch that runs again would make otherwise, and where in the query that shows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import (
    Aggregate,
    Deduplicate,
    Join,
    Stability,
    Stateful,
    StatefulFunction,
    Volatile,
)
from millstream.spec.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.analysis.dataflow import Column, Expression, Operator, PlannedQuery
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Span


class Fate(StrEnum):
    """Where a value ends, from the worst."""

    STATE = "state"
    """In what an operator keeps between batches."""
    KEY = "key"
    """In the columns by which a sink knows a row again."""
    ROUTE = "route"
    """In what decides where a sink puts a row."""
    FILTER = "filter"
    """In the choice of rows."""
    PAYLOAD = "payload"
    """In a column that is written."""


@dataclass(frozen=True)
class Flow:
    """A volatile expression and the worst place that it reaches."""

    volatile: Volatile
    fate: Fate
    into: str
    """That place, in words: `the key of postgres purchases`."""
    span: Span | None
    """Where the expression is written, or the nearest place that is known."""


def flows(query: PlannedQuery, *wanted: Stability) -> list[Flow]:
    """Each volatile expression of these stabilities once, with the worst place it reaches."""
    found: dict[tuple[str, str, Span | None], Flow] = {}
    for flow in _all(query, frozenset(wanted)):
        found.setdefault((flow.volatile.function, flow.volatile.text, flow.span), flow)
    return list(found.values())


def said(into: str, facts: Facts | None) -> str:
    """The place in words, with paths as they start at the spec's folder."""
    return into.replace(f"{facts.pipeline.folder}/", "") if facts else into


def counts_on_replay(query: PlannedQuery, facts: Facts | None) -> bool:
    """Does a sink promise that a batch run again changes nothing? False where that is not known."""
    kept = (Guarantee.EXACTLY_ONCE, Guarantee.EFFECTIVELY_ONCE)
    return any(one in kept for one in kept_by(query, facts))


def kept_by(query: PlannedQuery, facts: Facts | None) -> list[Guarantee]:
    """What each sink of a query keeps by itself; nothing for a script, whose sinks are not known."""
    if facts is None or query.name not in facts.pipeline.queries:
        return []
    entries = facts.pipeline.queries[query.name].to
    return [entry.sink.guarantee(query.output_mode)[0] for entry in entries]


def _all(query: PlannedQuery, wanted: frozenset[Stability]) -> Iterator[Flow]:
    for kept in query.of(Stateful):
        if isinstance(kept, Join) and not kept.of_streams:
            continue
        for one in _entering(kept):
            if one.stability in wanted:
                yield Flow(one, Fate.STATE, f"the state of {_kept(kept)}", one.span or kept.span)
    # What chooses rows flows into every column of theirs; it is told as what it is, and first.
    for operator in query.walk():
        if operator.node == "Filter" and operator.streaming:
            for one in _inside(operator.expressions):
                if one.stability in wanted:
                    yield Flow(one, Fate.FILTER, "the choice of rows", one.span or operator.span)
    for fate, into, column, span in _written(query):
        for one in column.volatile:
            if one.stability in wanted:
                yield Flow(one, fate, into, one.span or span)


def _written(query: PlannedQuery) -> Iterator[tuple[Fate, str, Column, Span | None]]:
    """The columns that sinks are given, each with what it decides there."""
    for fate, words in ((Fate.KEY, "the key of"), (Fate.ROUTE, "the place of a row in")):
        for sink in query.sinks:
            for name in sink.key if fate is Fate.KEY else sink.routed_by:
                if column := query.root.column(name):
                    yield fate, f"{words} {sink.name}", column, sink.span
    for column in query.root.columns:
        yield Fate.PAYLOAD, f"column '{column.name}'", column, query.root.span or query.span


def _entering(operator: Stateful) -> Iterator[Volatile]:
    """What is volatile in the rows that an operator keeps, or in the choice of those rows."""
    if isinstance(operator, Aggregate):
        yield from _of(operator.keys)
        yield from _inside(operator.functions)
    elif isinstance(operator, Deduplicate):
        yield from _of(operator.keys)
    elif isinstance(operator, Join | StatefulFunction):
        yield from _of(column for side in operator.inputs for column in side.columns)
    for under in operator.walk():
        if under.node == "Filter" and under.streaming:
            yield from _inside(under.expressions)


def _inside(expressions: Iterable[Expression]) -> Iterator[Volatile]:
    for expression in expressions:
        for one in expression.walk():
            if one.column:
                yield from one.column.volatile
            elif one.stability is not Stability.STABLE:
                yield Volatile(one.function, one.text, one.stability, one.span)


def _of(columns: Iterable[Column]) -> Iterator[Volatile]:
    return (one for column in columns for one in column.volatile)


def _kept(operator: Operator) -> str:
    match operator:
        case Aggregate():
            return "an aggregation"
        case Deduplicate():
            return "a deduplication"
        case Join():
            return "a join of streams"
        case _:
            return "a function with state"
