"""Event time in a planned query: the watermarks below an operator, what became of them, and what bounds its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.dataflow import Aggregate, Deduplicate, Read, Watermark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.dataflow import Column, Expression, Operator, PlannedQuery
    from millstream.diagnostics.finding import Span

# Whatever goes in, few values come out: remainders, parts of a date or a time of day, and what is true or false.
_FEW = frozenset(
    {
        "remainder",
        "pmod",
        "hour",
        "minute",
        "second",
        "month",
        "quarter",
        "year",
        "sign",
        "signum",
        "width_bucket",
    }
    | {"day_of_week", "week_day", "day_of_month", "day_of_year", "week_of_year"}
    | {
        "equal_to",
        "equal_null_safe",
        "greater_than",
        "greater_than_or_equal",
        "less_than",
        "less_than_or_equal",
    }
    | {
        "and",
        "or",
        "not",
        "in",
        "in_set",
        "is_null",
        "is_not_null",
        "like",
        "rlike",
        "contains",
        "starts_with",
    }
)


def place(query: PlannedQuery, operator: Operator) -> Span | None:
    """Where an operator is written, or else its query."""
    return operator.span or query.span


def who(query: PlannedQuery, operator: Operator) -> str:
    """What an operator belongs to, for a sentence: `view 'per_minute'`."""
    return f"view '{operator.view}'" if operator.view else f"query '{query.name}'"


def keyed(query: PlannedQuery) -> Iterator[Aggregate | Deduplicate]:
    """The aggregations of a query, then its deduplications."""
    yield from query.of(Aggregate)
    yield from query.of(Deduplicate)


def below(operator: Operator) -> Iterator[Operator]:
    """The operators below one, from the top."""
    return (one for side in operator.inputs for one in side.walk())


def watermarks(operator: Operator) -> list[Watermark]:
    """The watermarks on streams below an operator."""
    return [one for one in below(operator) if isinstance(one, Watermark) and one.streaming]


def streams(operator: Operator) -> list[Read]:
    """The streams that an operator reads."""
    return [one for one in operator.walk() if isinstance(one, Read) and one.streaming]


def is_time(column: Column) -> bool:
    """Is it a point of time, a day, or a window?"""
    kind = column.type.lower()
    return kind.startswith(("timestamp", "date", "struct<start:timestamp", "struct<`start`:timestamp"))


def timed(operator: Aggregate | Deduplicate) -> bool:
    """Is a window or a moment among the keys? A whole day adds one entry a day, as a total does, and is none."""
    return any(is_time(key) and key.type.lower() != "date" and key.origins for key in operator.keys)


def lost(operator: Aggregate | Deduplicate) -> tuple[Column, Watermark] | None:
    """A key made of event time that Spark no longer knows as event time, and the watermark it had.

    None too where Spark knows one of the keys: then it evicts by that.
    """
    if any(key.delay is not None for key in operator.keys):
        return None
    for mark in watermarks(operator):
        marked = mark.column(mark.event_time)
        for key in operator.keys:
            if marked and is_time(key) and key.origins & marked.origins:
                return key, mark
    return None


def lost_at(operator: Operator, mark: Watermark) -> Operator:
    """The operator that made the watermark's column into one that Spark does not know as event time."""
    marked = mark.column(mark.event_time)
    origins = marked.origins if marked else frozenset()
    kept = {one.name.lower() for one in mark.columns}
    found = operator
    for one in operator.walk():
        if not any(under is mark for under in below(one)):
            continue
        if any(
            column.delay is None
            and is_time(column)
            and column.origins & origins
            and not (column.copied and column.name.lower() in kept - {mark.event_time.lower()})
            for column in one.columns
        ):
            found = one
    return found


def bounded(operator: Operator, column: Column) -> bool:
    """Can a column of an operator have only so many values, whatever the stream brings?"""
    if column.type.lower() in ("boolean", "tinyint", "void"):
        return True
    static = {one.source for one in operator.walk() if isinstance(one, Read) and not one.streaming}
    if all(source in static for source, _ in column.origins) and not column.volatile:
        return True
    made = definition(operator, column.name)
    return made is not None and _few(made[0], made[1])


def definition(operator: Operator, name: str) -> tuple[Operator, Expression] | None:
    """The operator and the expression that a column of this name was made by, at it or below it."""
    for one in operator.walk():
        for expression in one.expressions:
            if expression.function == "alias" and _alias(expression) == name.lower():
                return one, expression
            if expression.text == name and expression.function not in ("column", "literal"):
                return one, expression
    return None


def _alias(expression: Expression) -> str:
    return expression.text.rpartition(" AS ")[2].strip("`").lower()


def _few(operator: Operator, expression: Expression) -> bool:
    if expression.function == "literal" or expression.type.lower() in ("boolean", "tinyint"):
        return True
    if expression.function in _FEW:
        return True
    if expression.function == "column":
        found = expression.column
        inside = next((side for side in operator.inputs if found and side.column(found.name)), None)
        return bool(found and inside and bounded(inside, found))
    return bool(expression.inputs) and all(_few(operator, one) for one in expression.inputs)


def kept_by_sinks(query: PlannedQuery, operator: Aggregate | Deduplicate) -> bool:
    """Does every sink keep one row for each key of the operator, so that its table is as large as the state?"""
    names = {key.name.lower() for key in operator.keys}
    origins = {origin for key in operator.keys for origin in key.origins}

    def same(key: tuple[str, ...]) -> bool:
        columns = [query.root.column(name) for name in key]
        made = {origin for column in columns if column for origin in column.origins}
        return bool(key) and ({name.lower() for name in key} == names or (bool(made) and made == origins))

    return bool(query.sinks) and all(same(sink.key) for sink in query.sinks)
