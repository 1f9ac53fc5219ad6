"""Derive properties of a query's output from its plan: keys, rows delayed by the watermark, window ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.query.column_lineage import grouping_expressions, output_expressions, trace_column
from millstream.analysis.query.plan_model import (
    Aggregate,
    Deduplicate,
    Join,
    Read,
    Stability,
    StatefulFunction,
    WatermarkOperator,
    WindowKind,
)
from millstream.spec.output_mode import OutputMode
from millstream.testing.shuffle.sink_contents import OutputReading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.analysis.query.plan_model import Operator, TimeWindow, VolatileExpression
    from millstream.pipeline.model import Pipeline

_MICROSECOND = 1_000_000
_OUTER_JOINS = frozenset({"left_outer", "right_outer", "full_outer", "left_anti"})


@dataclass(frozen=True)
class Shape:
    """The properties of a query's output rows, derived from its plan."""

    readings: tuple[OutputReading, ...]
    """The distinct ways in which readers of its sinks see the rows."""
    has_delayed_rows: bool
    """Whether a row may wait for the watermark before it is emitted."""
    depends_on_clock: bool
    """Whether the rows depend on the clock."""
    has_user_state: bool
    """Whether a user function keeps state, so that its output depends on the sequence of calls."""
    unstable_expressions: tuple[VolatileExpression, ...]
    """Expressions that may return a different value each time they are computed."""
    window: TimeWindow | None
    """The window of the first windowed grouping."""
    deduplications: int
    """Number of operators that keep one of several rows, any of which is correct."""
    has_state_removal: bool
    """Whether a view drops repeated rows within the watermark, so that a key may reappear later."""
    marked: frozenset[str]
    """The event-time columns of watermarks that are not declared on a source of the spec."""
    is_foldable: bool = True
    """Whether the final contents of a sink can be derived from the rows of the batches."""


def derive_shape(pipeline: Pipeline, query: str, root: Operator) -> Shape:
    """Derive the shape from a plan. `root` is the plan of the streaming DataFrame, with the spec's source names."""
    mode = pipeline.queries[query].output_mode
    streaming = [node for node in root.walk() if node.is_streaming]
    aggregates = [node for node in streaming if isinstance(node, Aggregate)]
    has_stateful_function = any(isinstance(node, StatefulFunction) for node in streaming)
    has_outer_join = any(
        isinstance(node, Join) and node.is_stream_stream and node.how in _OUTER_JOINS for node in streaming
    )
    volatile = {node for column in root.columns for node in column.volatile}
    sources_in_plan = {node.source for node in streaming if isinstance(node, Read)}
    sources_read = [name for name in pipeline.sources if name in sources_in_plan]
    declared_event_times = {
        entry.watermark.event_time.lower()
        for entry in pipeline.sources.values()
        if entry.watermark is not None
    }
    deduplication_key = _deduplication_columns(root)
    # In update mode, DISTINCT emits a row again each time it arrives.
    grouping_key = (
        _grouping_columns(root, aggregates) or deduplication_key if mode is OutputMode.UPDATE else ()
    )
    readings: dict[tuple[str, ...], OutputReading] = {}
    for entry in pipeline.queries[query].to:
        key = (
            entry.sink.row_key
            if entry.sink.replaces_table(mode) and not entry.sink.orders_by_column
            else grouping_key
        )
        readings.setdefault(
            key, OutputReading(entry.sink.describe(), mode, key, () if key else deduplication_key)
        )
    return Shape(
        readings=tuple(readings.values()),
        has_delayed_rows=mode is not OutputMode.COMPLETE
        and (has_outer_join or has_stateful_function or (mode is OutputMode.APPEND and bool(aggregates))),
        depends_on_clock=any(node.stability is Stability.BATCH for node in volatile),
        has_user_state=has_stateful_function,
        unstable_expressions=tuple(
            node
            for node in volatile
            if node.stability not in (Stability.STABLE, Stability.BATCH, Stability.UNKNOWN)
        ),
        window=next((node.window for node in reversed(aggregates) if node.window is not None), None),
        has_state_removal=sum(
            isinstance(node, Deduplicate) and node.is_within_watermark for node in streaming
        )
        > sum(bool(pipeline.sources[name].drop_duplicates_within_watermark) for name in sources_read),
        deduplications=sum(isinstance(node, Deduplicate) for node in streaming),
        marked=frozenset(
            node.event_time
            for node in streaming
            if isinstance(node, WatermarkOperator) and node.event_time.lower() not in declared_event_times
        ),
        is_foldable=not (
            mode is OutputMode.UPDATE and () in readings and (aggregates or has_stateful_function)
        ),
    )


def last_window_end(window: TimeWindow | None, time: int) -> int:
    """Return the end of the last window that contains this time, or the time itself without a window.

    Times are microseconds since 1970. A window's start offset is not taken into account.
    """
    if window is None or window.length is None:
        return time
    length = int(window.length.total_seconds() * _MICROSECOND)
    if window.kind is WindowKind.SESSION:
        return time + length
    slide = int(window.slide.total_seconds() * _MICROSECOND) if window.slide else length
    return time // slide * slide + length


def _grouping_columns(root: Operator, aggregates: list[Aggregate]) -> tuple[str, ...]:
    """Return the output columns that depend only on grouping keys, if they identify the rows."""
    if not aggregates:
        return ()
    top = aggregates[0]
    aggregate_outputs = output_expressions(top) or ()
    names, keys_covered = [], set()
    for index, column in enumerate(root.columns):
        origins = trace_column(root, index, top)
        if not origins or any(origin >= len(aggregate_outputs) for origin in origins):
            continue
        if not any(node in top.functions for origin in origins for node in aggregate_outputs[origin].walk()):
            names.append(column.name)
            keys_covered |= {
                node.column.name
                for origin in origins
                for node in aggregate_outputs[origin].walk()
                if node.column is not None
            }
    keys = {
        node.column.name
        for origin in grouping_expressions(top)
        for node in origin.walk()
        if node.column is not None
    }
    return tuple(names) if keys <= keys_covered else ()


def _deduplication_columns(root: Operator) -> tuple[str, ...]:
    """Return the output columns that are the keys of a top-level deduplication, if all of them are in the output."""
    operator = root
    while (
        not isinstance(operator, Deduplicate)
        and len(operator.inputs) == 1
        and operator.node in ("Project", "Filter")
    ):
        operator = operator.inputs[0]
    if not isinstance(operator, Deduplicate):
        return ()
    name_by_key = dict(_copied_columns(root, operator))
    names = [name_by_key.get(key.name.lower()) for key in operator.keys]
    return tuple(name for name in names if name is not None) if None not in names else ()


def _copied_columns(root: Operator, below: Operator) -> Iterator[tuple[str, str]]:
    """Yield the operator's columns that are copied to the output: their lower-case name and their output name."""
    for position, column in enumerate(root.columns):
        origins = trace_column(root, position, below)
        if origins is not None and len(origins) == 1:
            (index,) = origins
            if index < len(below.columns) and column.is_copied:
                yield below.columns[index].name.lower(), column.name
