"""Find a query's event-time column, and the time up to which the live query has already written its rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query.event_time import find_definition, is_time
from millstream.analysis.query.plan_model import Aggregate, Join, Stability, StatefulFunction
from millstream.connectors.api.values.event_time_range import EventTimeRange
from millstream.connectors.api.values.time_pattern import parse_zone
from millstream.diagnostics.failure import InvalidInput
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.analysis.query.plan_model import Column, PlannedQuery
    from millstream.backfill.options import BackfillOptions
    from millstream.pipeline.model import Pipeline

_NAME_COLUMN = "name the column that contains the event time of a row: --column NAME"
# Values that a second run does not repeat: the time of the run, how rows are split into tasks, random numbers.
_NOT_REPEATABLE = (Stability.BATCH, Stability.PARTITION, Stability.UNSTABLE)


def select_time_range(pipeline: Pipeline, planned: PlannedQuery, options: BackfillOptions) -> EventTimeRange:
    """Return the selected range. Raises `InvalidInput` if a range is given but no column contains the event time."""
    if options.start is None and options.end is None:
        return EventTimeRange()
    column, path = find_event_time_column(pipeline, planned, options.column)
    if column.type.lower() == "date":
        zone = pipeline.session_zone
        for option, moment in (("--from", options.start), ("--to", options.end)):
            midnight = moment and _find_midnight(moment, zone)
            if midnight is not None and midnight != moment:
                raise InvalidInput(
                    f"query '{planned.name}': the event-time column '{column.name}' is a date, but {option} is in "
                    f"the middle of a day in {zone}",
                    f"pass the start of a day, such as {option} {midnight.isoformat(timespec='minutes')}",
                )
    return EventTimeRange(path, options.start, options.end)


def _find_midnight(moment: datetime, zone: str) -> datetime | None:
    """Return the start of a time's day in the zone of a Spark session, with which Spark compares a date.

    None for a zone that only Spark knows, such as `PST`.
    """
    try:
        local = moment.astimezone(parse_zone(zone))
    except ValueError:
        return None
    return local.replace(hour=0, minute=0, second=0, microsecond=0)


def find_event_time_column(
    pipeline: Pipeline, planned: PlannedQuery, name: str | None = None
) -> tuple[Column, tuple[str, ...]]:
    """Return the event-time column and its path: the column `name`, or the only candidate. Raises `InvalidInput`."""
    return _named_column(planned, name) if name else _only_time_column(pipeline, planned)


def _named_column(planned: PlannedQuery, name: str) -> tuple[Column, tuple[str, ...]]:
    """Return the column of that name, or its field."""
    full_column = planned.root.column(name)
    first, _, rest = name.partition(".")
    column = full_column or planned.root.column(first)
    if column is None:
        known = ", ".join(known_column.name for known_column in planned.root.columns)
        raise InvalidInput(f"query '{planned.name}' has no column '{name}'", f"its columns are {known}")
    if not is_time(column):
        raise InvalidInput(
            f"query '{planned.name}': column '{column.name}' is {column.type}, which is not a time",
            "name a timestamp or date column, or a window",
        )
    return column, _path(column, "" if full_column else rest)


def _only_time_column(pipeline: Pipeline, planned: PlannedQuery) -> tuple[Column, tuple[str, ...]]:
    """Return the only column derived from event time alone, not counting the ends of windows."""
    candidates = list_time_columns(pipeline, planned)
    starts = [
        column
        for column in candidates
        if not (is_window_end(planned, column) or column.name.lower().endswith("end"))
    ]
    if len(starts) == 1:
        return starts[0], _path(starts[0], "")
    if not starts:
        raise InvalidInput(
            f"query '{planned.name}': no column is derived from event time alone, so the rows in the range cannot be "
            "determined",
            _NAME_COLUMN,
        )
    raise InvalidInput(
        f"query '{planned.name}': columns {' and '.join(column.name for column in starts)} are both event times",
        _NAME_COLUMN,
    )


def list_time_columns(pipeline: Pipeline, planned: PlannedQuery) -> list[Column]:
    """List the columns that are derived from event time alone."""
    watermarked = {
        (name, entry.watermark.event_time.lower())
        for name, entry in pipeline.sources.items()
        if entry.watermark is not None
    }
    return [
        column
        for column in planned.root.columns
        if is_time(column)
        and column.origins
        and {(source, name.lower()) for source, name in column.origins} <= watermarked
    ]


def is_window_end(planned: PlannedQuery, column: Column) -> bool:
    """Return whether a column is defined as the end of a window."""
    column_definition = find_definition(planned.root, column.name)
    text = column_definition[1].text.partition(" AS ")[0].lower() if column_definition else ""
    return text.rstrip("`").endswith((".end", ".`end"))


def _path(column: Column, field: str) -> tuple[str, ...]:
    return (column.name, field or "start") if column.type.lower().startswith("struct") else (column.name,)


def input_time_reach(planned: PlannedQuery) -> timedelta:
    """Return how far a row's input may be from the row's own time: the lengths of windows and bounds of joins.

    Of a session window, only the gap is known.
    """
    distance = timedelta()
    for operator in planned.walk():
        if isinstance(operator, Aggregate) and operator.window and operator.window.length:
            distance += operator.window.length
        if isinstance(operator, Join) and operator.bound:
            distance += max(
                (
                    abs(limit)
                    for limit in (operator.bound.earliest, operator.bound.latest)
                    if limit is not None
                ),
                default=timedelta(),
            )
    return distance


def delays_output(planned: PlannedQuery) -> bool:
    """Return whether the query writes a row later than it reads the row's input, or writes a row again."""
    return any(
        isinstance(operator, Aggregate | StatefulFunction)
        or (
            isinstance(operator, Join)
            and operator.is_stream_stream
            and operator.how not in ("inner", "left_semi", "cross")
        )
        for operator in planned.walk()
        if operator.is_streaming
    )


def find_write_frontier(
    planned: PlannedQuery, watermark: datetime | None, options: BackfillOptions
) -> datetime | None:
    """Return the time from which on the query itself has yet to write rows; None if it never delays rows.

    `watermark` is that of its last batch. In append mode such rows are not in the sink yet. In the other modes they
    are, and a later batch replaces them, so they are compared but not written.
    """
    if watermark is None or not delays_output(planned):
        return None
    if planned.output_mode is not OutputMode.APPEND and (not options.writes or options.into):
        return None
    return watermark - input_time_reach(planned)


def nondeterministic_columns(planned: PlannedQuery, key: Sequence[str]) -> list[str]:
    """Return the columns whose values differ in each run.

    Raises `InvalidInput` if these are the key, or all columns.
    """
    key_names = {name.lower() for name in key}
    columns = [
        column.name
        for column in planned.root.columns
        if any(expression.stability in _NOT_REPEATABLE for expression in column.volatile)
    ]
    key_columns = [name for name in columns if name.lower() in key_names]
    if key_columns or (columns and len(columns) == len(planned.root.columns)):
        text = next(
            expression.text
            for column in planned.root.columns
            if column.name in (key_columns or columns)
            for expression in column.volatile
            if expression.stability in _NOT_REPEATABLE
        )
        raise InvalidInput(
            f"query '{planned.name}': {'its key' if key_columns else 'each of its rows'} depends on {text}, which "
            "has different values in each run",
            "remove it from the view, or include the value in the input",
        )
    return columns
