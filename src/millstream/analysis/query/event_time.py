"""Analyse event time in a planned query: the watermarks below an operator, where they are lost, and bounded keys."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query.column_lineage import grouping_expressions, list_read_positions, trace_column
from millstream.analysis.query.plan_model import Aggregate, Deduplicate, Read, WatermarkOperator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Column, Expression, Operator, PlannedQuery
    from millstream.diagnostics.finding import Span

# Functions with few possible results: remainders, parts of a date or a time of day, and booleans.
_FEW_VALUES = frozenset(
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

# Functions that write a time as a number.
_TIME_NUMBERS = frozenset(
    {"unix_timestamp", "to_unix_timestamp", "unix_seconds", "unix_millis", "unix_micros"}
)

# Units of `date_trunc`, from a day upwards.
_DAYS = frozenset({"day", "dd", "week", "month", "mon", "mm", "quarter", "year", "yyyy", "yy"})

# One window per hour gives nine thousand rows per year.
_SHORT_WINDOW = timedelta(hours=1)


def find_span(query: PlannedQuery, operator: Operator) -> Span | None:
    """Return the span of an operator, or of its query if it has none."""
    return operator.span or query.span


def owner_label(query: PlannedQuery, operator: Operator) -> str:
    """Name the view or query of an operator, for a message: `view 'per_minute'`."""
    return f"view '{operator.view}'" if operator.view else f"query '{query.name}'"


def list_keyed_operators(query: PlannedQuery) -> Iterator[Aggregate | Deduplicate]:
    """Yield the aggregations of a query, then its deduplications."""
    yield from query.of(Aggregate)
    yield from query.of(Deduplicate)


def walk_below(operator: Operator) -> Iterator[Operator]:
    """Yield the operators below an operator, from the top."""
    return (child for side in operator.inputs for child in side.walk())


def list_watermarks(operator: Operator) -> list[WatermarkOperator]:
    """List the streaming watermarks below an operator."""
    return [
        child for child in walk_below(operator) if isinstance(child, WatermarkOperator) and child.is_streaming
    ]


def list_streams(operator: Operator) -> list[Read]:
    """List the streams that an operator reads."""
    return [child for child in operator.walk() if isinstance(child, Read) and child.is_streaming]


def is_time(column: Column) -> bool:
    """Return whether the column is a timestamp, a date, or a window."""
    type_name = column.type.lower()
    return type_name.startswith(("timestamp", "date", "struct<start:timestamp", "struct<`start`:timestamp"))


def has_time_key(operator: Aggregate | Deduplicate) -> bool:
    """Return whether a window or a timestamp is among the keys. A date is not counted: it adds one entry per day."""
    return any(is_time(key) and key.type.lower() != "date" and key.origins for key in operator.keys)


def is_written_time(operator: Operator, column: Column) -> bool:
    """Return whether a column is a time as text or as a number, such as '2026-11-29 19:48'. A day is not counted."""
    definition = find_definition(operator, column.name)
    return definition is not None and _writes_time(definition[1])


def _writes_time(expression: Expression) -> bool:
    inputs = expression.inputs
    match expression.function:
        case _ if any(_truncates_to_day(child) for child in inputs):
            return False
        case "alias" | "cast" if inputs and not expression.type.startswith(("timestamp", "date")):
            is_cast_time = expression.function == "cast" and _type_of(inputs[0]).startswith("timestamp")
            return is_cast_time or _writes_time(inputs[0])
        case "date_format" | "from_unix_time" if len(inputs) > 1:
            letters = set(re.sub("'[^']*'", "", str(inputs[1].value)))
            return bool(letters & set("yu")) and bool(letters & set("HhKk"))
        case function:
            return function in _TIME_NUMBERS


def _truncates_to_day(expression: Expression) -> bool:
    """Return whether an expression is `date_trunc('day', ts)`, or has a larger unit."""
    unit = expression.inputs[0].value if expression.function == "trunc_timestamp" else None
    return isinstance(unit, str) and unit.lower() in _DAYS


def _type_of(expression: Expression) -> str:
    if expression.function == "trunc_timestamp":
        return "timestamp"
    return (expression.type or (expression.column.type if expression.column else "")).lower()


def outputs_every_window(aggregate: Aggregate) -> bool:
    """Return whether complete mode writes more windows with each batch, because windows do not repeat."""
    window = aggregate.window
    if window is None:
        return False
    step = window.slide or window.length
    return len(aggregate.keys) > 1 or (step is not None and step < _SHORT_WINDOW)


def find_lost_watermark(operator: Aggregate | Deduplicate) -> tuple[Column, WatermarkOperator] | None:
    """Return a key computed from event time that lost its watermark, and that watermark.

    Return `None` also if another key has a watermark, because Spark evicts by that key.
    """
    if any(key.delay is not None for key in operator.keys):
        return None
    for watermark in list_watermarks(operator):
        event_time_column = watermark.column(watermark.event_time)
        for key in operator.keys:
            if (
                event_time_column
                and is_time(key)
                and key.origins & event_time_column.origins
                and not _is_other_time(operator, key, watermark)
            ):
                return key, watermark
    return None


def _is_other_time(operator: Aggregate | Deduplicate, key: Column, watermark: WatermarkOperator) -> bool:
    """Return whether a key is computed from other times than that of the watermark, such as a field of one message.

    All fields of a message have one origin, so the columns at and below the watermark are compared.
    """
    below = operator.inputs[0]
    expressions = grouping_expressions(operator) if isinstance(operator, Aggregate) else ()
    expression = dict(zip(operator.keys, expressions, strict=False)).get(key)
    columns_read = (
        [position for position, column in enumerate(below.columns) if column == key]
        if expression is None
        else list(list_read_positions(below, expression))
    )
    traces = [trace_column(below, position, watermark) for position in columns_read]
    positions = {position for trace in traces for position in trace or ()}
    return (
        bool(positions)
        and None not in traces
        and not any(_has_event_time(watermark, position) for position in positions)
    )


def _has_event_time(watermark: WatermarkOperator, position: int) -> bool:
    """Return whether a column at a watermark is the event time, is no time, or has a time in common with it.

    `date_trunc('hour', ts)` below a watermark on `ts` has this `ts` in common with it. A struct in common is the
    message of both.
    """
    if not is_time(watermark.columns[position]):
        return True
    names = [column.name.lower() for column in watermark.columns]
    event_time_position = names.index(watermark.event_time.lower())
    return any(
        is_time(node.columns[common]) and not node.columns[common].type.startswith("struct")
        for node in watermark.walk()
        for common in (trace_column(watermark, position, node) or frozenset())
        & (trace_column(watermark, event_time_position, node) or frozenset())
    )


def find_losing_operator(operator: Operator, watermark: WatermarkOperator) -> Operator:
    """Return the operator at which the column of the watermark lost it."""
    event_time_column = watermark.column(watermark.event_time)
    origins = event_time_column.origins if event_time_column else frozenset()
    kept_names = {child.name.lower() for child in watermark.columns}
    origin = operator
    for child in operator.walk():
        if not any(descendant is watermark for descendant in walk_below(child)):
            continue
        if any(
            column.delay is None
            and is_time(column)
            and column.origins & origins
            and not (column.is_copied and column.name.lower() in kept_names - {watermark.event_time.lower()})
            for column in child.columns
        ):
            origin = child
    return origin


def is_bounded(operator: Operator, column: Column) -> bool:
    """Return whether a column has a limited number of values, whatever the stream contains."""
    if column.type.lower() in ("boolean", "tinyint", "void"):
        return True
    static = {child.source for child in operator.walk() if isinstance(child, Read) and not child.is_streaming}
    if all(source in static for source, _ in column.origins) and not column.volatile:
        return True
    origin = find_definition(operator, column.name)
    return origin is not None and _has_few_values(origin[0], origin[1])


def find_definition(operator: Operator, name: str) -> tuple[Operator, Expression] | None:
    """Return the operator, at or below this one, and the expression that computes a column of this name."""
    for child in operator.walk():
        for expression in child.expressions:
            if expression.function == "alias" and _get_alias(expression) == name.lower():
                return child, expression
            if expression.text == name and expression.function not in ("column", "literal"):
                return child, expression
    return None


def _get_alias(expression: Expression) -> str:
    return expression.text.rpartition(" AS ")[2].strip("`").lower()


def _has_few_values(operator: Operator, expression: Expression) -> bool:
    if expression.function == "literal" or expression.type.lower() in ("boolean", "tinyint"):
        return True
    if expression.function in _FEW_VALUES or _extracts_part(expression):
        return True
    if expression.function == "column":
        column = expression.column
        input_operator = next((side for side in operator.inputs if column and side.column(column.name)), None)
        return bool(column and input_operator and is_bounded(input_operator, column))
    return bool(expression.inputs) and all(_has_few_values(operator, child) for child in expression.inputs)


def _extracts_part(expression: Expression) -> bool:
    """Return whether an expression is `extract(HOUR FROM ts)` or `date_part('hour', ts)`; seconds have fractions."""
    field = expression.inputs[0].value if expression.function == "extract" and expression.inputs else None
    return isinstance(field, str) and not field.lower().startswith("s")


def is_keyed_by_sinks(query: PlannedQuery, operator: Aggregate | Deduplicate) -> bool:
    """Return whether every sink stores one row per key of the operator, so its table is as large as the state."""
    names = {key.name.lower() for key in operator.keys}
    origins = {origin for key in operator.keys for origin in key.origins}

    def is_same_key(key: tuple[str, ...]) -> bool:
        columns = [query.root.column(name) for name in key]
        key_origins = {origin for column in columns if column for origin in column.origins}
        return bool(key) and (
            {name.lower() for name in key} == names or (bool(key_origins) and key_origins == origins)
        )

    return bool(query.sinks) and all(is_same_key(sink.key) for sink in query.sinks)


def is_total_of_sinks(query: PlannedQuery, aggregate: Aggregate) -> bool:
    """Return whether a total is intended: every sink stores one row per group, and no key is a time as text."""
    return is_keyed_by_sinks(query, aggregate) and not any(
        is_written_time(aggregate, key) for key in aggregate.keys
    )
