"""The key of a sink can be the same in several rows of one batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.analysis.query.column_lineage import (
    grouping_expressions,
    list_read_positions,
    output_expressions,
    trace_column,
)
from millstream.analysis.query.plan_model import Aggregate, Deduplicate, Join
from millstream.analysis.rule_context import Code, Facts
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.analysis.query.plan_model import Operator, PlannedQuery
    from millstream.diagnostics.finding import Finding, Span

CODE = Code.of(__name__)
# Spark reads `explode_outer` and similar as an outer `explode`.
_GENERATORS = frozenset({"explode", "posexplode", "inline"})


@dataclass(frozen=True)
class _SinkKey:
    """The key of a sink, the setting that names its columns, and their positions in the operator below."""

    columns: tuple[str, ...]
    setting: str
    span: Span
    positions: frozenset[int]

    @property
    def is_merged(self) -> bool:
        """Return whether the sink refuses a repeated key; a topic stores each record."""
        return self.setting == "merge_on"

    @property
    def names(self) -> str:
        return ", ".join(self.columns)

    def report(self, *, is_certain: bool) -> Callable[..., Finding]:
        return CODE.error if is_certain and self.is_merged else CODE.warning


def judge(query: PlannedQuery, facts: Facts | None) -> Iterator[Finding]:
    """Compare the key of each sink with the operator that decides how many rows per key a batch has.

    A key without the window that a query groups by repeats in the first batch that spans two windows. Other group
    columns may depend on the key, as a name depends on an id, and are not checked.
    """
    operator = _find_row_defining_operator(query.root)
    if facts is None or operator is None or query.output_mode is OutputMode.COMPLETE:
        return
    for number, sink in enumerate(query.sinks):
        positions = [_find_position(query.root, name) for name in sink.key]
        known = [
            trace_column(query.root, position, operator) for position in positions if position is not None
        ]
        if not sink.key or len(known) < len(sink.key) or None in known:
            continue
        if facts.pipeline.queries[query.name].to[number].sink.orders_by_column:
            # Of several changes of a key, the sink takes the last.
            continue
        path = ("queries", query.name, "to", number, "sink")
        setting = facts.key_setting(query.name, number)
        key = _SinkKey(
            sink.key,
            setting,
            facts.places.value(*path, setting),
            frozenset(position for inputs in known for position in inputs or ()),
        )
        if isinstance(operator, Aggregate):
            yield from _check_time_groups(query, operator, key)
        elif not isinstance(operator, Deduplicate):
            yield from _check_generated_rows(query, operator, key)
        elif key.is_merged:
            yield from _check_deduplication(query, operator, key)


def _check_time_groups(query: PlannedQuery, aggregate: Aggregate, key: _SinkKey) -> Iterator[Finding]:
    """Report group columns of time that are not in the key, in whole or in part (such as a window's start)."""
    expressions = output_expressions(aggregate) or ()
    child = aggregate.inputs[0]
    in_key = {
        expression
        for position in key.positions
        if position < len(expressions)
        for expression in list_read_positions(child, expressions[position])
    }
    for expression, column in zip(grouping_expressions(aggregate), aggregate.keys, strict=False):
        columns_read = set(list_read_positions(child, expression))
        is_window = column.type.startswith("struct<start:timestamp")
        # An unrounded time may depend on an id; a time truncated to the hour or day is in effect a window.
        is_rounded_time = expression.column is None and any(
            child.columns[position].delay is not None for position in columns_read
        )
        if not (is_window or is_rounded_time) or columns_read & in_key:
            continue
        suffix = f" over '{aggregate.window.column}'" if aggregate.window else ""
        grouping_name = f"the window{suffix}" if is_window else f"the time '{column.name}'"
        missing = "window.start" if is_window else f"'{column.name}'"
        yield key.report(is_certain=is_window)(
            f"query '{query.name}' groups by {grouping_name}, which is not in {key.setting}",
            key.span,
            why=f"a batch with two such times for the same ({key.names}) has this key twice, and the sink refuses it"
            if key.is_merged
            else f"two such times for the same ({key.names}) are records of one key, of which readers use the newest",
            fix=f"select {missing} in the view, and add it to {key.setting}",
            query=query.name,
        )


def _check_deduplication(query: PlannedQuery, deduplicate: Deduplicate, key: _SinkKey) -> Iterator[Finding]:
    """Compare the key of the deduplication with the key of the sink."""
    key_positions = {
        position
        for position, column in enumerate(deduplicate.columns)
        if any(column == key_column for key_column in deduplicate.keys)
    }
    if not key_positions or key_positions & key.positions:
        return
    names = ", ".join(column.name for column in deduplicate.keys)
    yield CODE.warning(
        f"query '{query.name}' deduplicates rows by ({names}), but its sink merges by ({key.names})",
        key.span,
        why=f"two rows of a batch may differ in ({names}) but have the same key; the sink then refuses the batch",
        fix=f"merge on ({names}), or group by ({key.names}) and take the latest row with max_by(…)",
        query=query.name,
    )


def _check_generated_rows(query: PlannedQuery, generate: Operator, key: _SinkKey) -> Iterator[Finding]:
    """Report one row per array element if no column of the element is in the key."""
    if any(position >= len(generate.inputs[0].columns) for position in key.positions):
        return
    function = generate.expressions[0].text
    is_certain = not _selects_elements(query.root, generate)
    subject = (
        "the rows of two elements" if is_certain else "if several elements of a row pass the condition, they"
    )
    yield key.report(is_certain=is_certain)(
        f"query '{query.name}' turns one row into several with {function}, but {key.setting} has no column of the "
        f"elements",
        key.span,
        why=f"{subject} have the same ({key.names}), and "
        + ("the sink refuses the batch" if key.is_merged else "readers use the newest record of a key"),
        fix=f"add a column of the element to {key.setting}, or its position from posexplode",
        query=query.name,
    )


def _selects_elements(root: Operator, generate: Operator) -> bool:
    """Return whether a condition above a generator reads an element, and so may leave one row per key."""
    width = len(generate.inputs[0].columns)
    for operator in root.walk():
        selects = operator.node == "Filter" or (
            isinstance(operator, Join) and operator.how in ("inner", "left_semi", "left_anti")
        )
        for side in operator.inputs if selects else ():
            if not any(below is generate for below in side.walk()):
                continue
            for position in (
                position
                for expression in operator.expressions
                for position in list_read_positions(side, expression)
            ):
                inputs = trace_column(side, position, generate)
                if inputs is None or any(traced >= width for traced in inputs):
                    return True
    return False


def _find_row_defining_operator(operator: Operator) -> Operator | None:
    """Return the topmost operator that decides the number of rows per key, below row-preserving operators only."""
    while True:
        if isinstance(operator, Aggregate | Deduplicate):
            return operator if operator.is_streaming else None
        if operator.node == "Generate" and operator.expressions:
            return operator if operator.expressions[0].function in _GENERATORS else None
        if isinstance(operator, Join):
            streams = [child for child in operator.inputs if child.is_streaming]
            if len(streams) != 1:
                return None
            operator = streams[0]
        elif len(operator.inputs) == 1 and (output_expressions(operator) or operator.node in _ROW_PRESERVING):
            operator = operator.inputs[0]
        else:
            return None


_ROW_PRESERVING = frozenset({"Filter", "EventTimeWatermark"})


def _find_position(root: Operator, name: str) -> int | None:
    lower_names = [column.name.lower() for column in root.columns]
    return lower_names.index(name.lower()) if name.lower() in lower_names else None
