"""How far the unstable expressions of a query reach: into values, into the choice of rows and keys, into state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import (
    Aggregate,
    BatchFunction,
    Deduplicate,
    Join,
    Read,
    Stability,
    Stateful,
    StatefulFunction,
    Volatile,
    Watermark,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.analysis.dataflow import Column, Expression, Operator, PlannedQuery, PlannedSink

UNSTABLE = frozenset({Stability.UNSTABLE, Stability.PARTITION})
"""What gives other values when a batch runs again, and does so for sure."""


class Reach(StrEnum):
    """Where unstable values end up. From the safest to the worst."""

    NOTHING = "nothing"
    """There are none, or none that is kept."""
    VALUES = "values"
    """In columns that are written and decide nothing."""
    ROWS = "rows"
    """In which rows come out, in a sink's key or in where a row goes."""
    STATE = "state"
    """In what an operator keeps between batches."""


@dataclass(frozen=True)
class Touch:
    """An unstable expression, and what it reaches."""

    reach: Reach
    cause: Volatile
    operator: Operator | None = None
    """The operator whose state or choice of rows it reaches."""
    column: str = ""
    """The column that is written, where it reaches one."""


def touches(query: PlannedQuery, sink: PlannedSink | None = None) -> list[Touch]:
    """What unstable expressions reach on their way to one sink, the worst first."""
    found = list(_within(query.root, None))
    deciding = {name.lower() for name in (*sink.key, *sink.routed_by)} if sink else set()
    for column in query.root.columns:
        reach = Reach.ROWS if column.name.lower() in deciding else Reach.VALUES
        found += [Touch(reach, cause, None, column.name) for cause in _unstable(column.volatile)]
    order = list(Reach)
    return sorted(found, key=lambda one: -order.index(one.reach))


def trusted(query: PlannedQuery) -> list[Volatile]:
    """Functions of the user's, of which Spark cannot tell, and values that depend on the order of rows."""
    found: dict[tuple[str, Stability], Volatile] = {}
    for operator in query.walk():
        flowing = [cause for column in operator.columns for cause in column.volatile]
        for cause in (*flowing, *_own(operator)):
            if cause.stability in (Stability.UNKNOWN, Stability.ORDER):
                found.setdefault((cause.function, cause.stability), cause)
    return list(found.values())


def _within(operator: Operator, keeper: Stateful | None) -> Iterator[Touch]:
    """Touches inside the plan; `keeper` is the nearest operator above that keeps state."""
    if keeps(operator):
        assert isinstance(operator, Stateful)
        for cause in _unstable(_kept(operator)):
            yield Touch(Reach.STATE, cause, operator)
        keeper = operator
    elif _chooses(operator):
        for cause in _unstable(_read(operator.expressions)):
            yield Touch(Reach.STATE if keeper else Reach.ROWS, cause, keeper or operator)
    elif isinstance(operator, Watermark) and keeper:
        time = operator.column(operator.event_time)
        for cause in _unstable(time.volatile if time else ()):
            yield Touch(Reach.STATE, cause, keeper)
    for below in operator.inputs:
        yield from _within(below, keeper)


def keeps(operator: Operator) -> bool:
    """Does it keep state between batches?"""
    if isinstance(operator, Join):
        return operator.of_streams
    return isinstance(operator, Stateful) and operator.streaming


def _chooses(operator: Operator) -> bool:
    """Do its expressions decide which rows there are?"""
    return operator.streaming and (isinstance(operator, Join) or operator.node in ("Filter", "Generate"))


def _kept(operator: Stateful) -> Iterator[Volatile]:
    """What flows into an operator's state."""
    match operator:
        case Aggregate():
            yield from _of_columns(operator.keys)
            yield from _read((*operator.functions, *operator.expressions))
        case Deduplicate():
            yield from _of_columns(operator.keys)
        case Join():
            yield from _of_columns(column for side in operator.inputs for column in side.columns)
            yield from _read(operator.expressions)
        case StatefulFunction():
            yield from _of_columns(column for side in operator.inputs for column in side.columns)
        case _:
            yield from _read(operator.expressions)


def _own(operator: Operator) -> Iterator[Volatile]:
    """What is volatile in an operator's own expressions, and the function that it is."""
    yield from _read(operator.expressions)
    if isinstance(operator, StatefulFunction | BatchFunction) and not isinstance(operator, Read):
        yield Volatile(operator.function, operator.function, Stability.UNKNOWN, operator.span)


def _read(expressions: Iterable[Expression]) -> Iterator[Volatile]:
    """What is volatile in expressions: the columns they read, and functions of their own."""
    for expression in expressions:
        for node in expression.walk():
            if node.column is not None:
                yield from node.column.volatile
            elif node.stability is not Stability.STABLE:
                yield Volatile(_name(node), node.text, node.stability, node.span)


def _name(node: Expression) -> str:
    """A function's own name; that of the user's stands in the text."""
    own = node.function.endswith(("_udf", "_udtf"))
    return node.text.partition("(")[0].lower() if own else node.function


def _of_columns(columns: Iterable[Column]) -> Iterator[Volatile]:
    for column in columns:
        yield from column.volatile


def _unstable(causes: Iterable[Volatile]) -> list[Volatile]:
    return [cause for cause in dict.fromkeys(causes) if cause.stability in UNSTABLE]
