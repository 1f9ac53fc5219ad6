"""Generate the rows of a generated test: in order, repeated, late, and one that closes every window."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

from millstream.analysis.query.plan_model import Aggregate, WatermarkOperator
from millstream.checking.sample_rows.generated_rows import BEGIN, RowPlan, build_message, build_row
from millstream.testing.model import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.analysis.query.plan_model import Operator
    from millstream.checking.sample_rows.column_hints import ColumnHints
    from millstream.pipeline.model import SourceEntry
    from millstream.testing.model import Fed, Row

_STEP = dt.timedelta(minutes=5)
_FAR = dt.timedelta(days=40)
# The numbers of the rows of each step: their values follow from them.
_STEPS = ((0, 1, 2, 2), (3, 4, 5), (6, 7), (8,))
LATE, FAR = 6, 8
"""The number of the row that is late, and of the one that is far ahead."""
# The numbers of the rows in which some columns are NULL.
_WITH_NULL = (3, 4, 7)
# The columns of a message that its broker sets.
_KEY, _VALUE = "key", "value"


@dataclass(frozen=True)
class EventTimes:
    """How far apart the rows of a test are: `step` between two rows, `late` and `far` from the newest row."""

    step: dt.timedelta
    late: dt.timedelta
    far: dt.timedelta

    @classmethod
    def of(cls, root: Operator) -> EventTimes:
        """Return the times for a plan: a late row is behind its watermark, and so is the end of its window."""
        nodes = [*root.walk()]
        delay = max(
            (node.delay for node in nodes if isinstance(node, WatermarkOperator)), default=dt.timedelta()
        )
        windows = [node.window for node in nodes if isinstance(node, Aggregate) and node.window is not None]
        length = max((window.length or dt.timedelta() for window in windows), default=dt.timedelta())
        # Two or three rows fall into one window.
        step = max(_STEP, dt.timedelta(seconds=length.total_seconds() // 180 * 60))
        return cls(step, delay + length + 2 * step, delay + 2 * length + _FAR)


def plan_steps(times: EventTimes, *, has_nulls: bool) -> list[list[RowPlan]]:
    """Return the rows of each step, in the order in which they arrive. Some have columns that are NULL.

    12:00  12:05  12:10  12:10  |  12:15  12:20  12:25  |  late  12:35  |  far ahead
    """
    nulls = {number: index for index, number in enumerate(_WITH_NULL)} if has_nulls else {}
    return [
        [RowPlan(number, _time_of(number, times), nulls.get(number)) for number in numbers]
        for numbers in _STEPS
    ]


def build_items(
    entry: SourceEntry, schema: t.StructType, rows: list[RowPlan], hints: ColumnHints
) -> tuple[Fed, ...]:
    """Return the rows of a source: messages if it delivers bytes and the spec does not decode them, else columns."""
    if entry.source.has_payload and entry.columns is None:
        return tuple(
            Record(
                build_message(hints.message, row, hints),
                key=f"k{row.number % 4}".encode(),
                timestamp=row.time,
            )
            for row in rows
        )
    return tuple(_to_row(schema, build_row(schema, row, hints)) for row in rows)


def build_table(schema: t.StructType, hints: ColumnHints) -> tuple[Row, ...]:
    """Return the rows of a static table, all different."""
    numbers = dict.fromkeys(number for step in _STEPS[:2] for number in step)
    rows = [_to_row(schema, build_row(schema, RowPlan(number, BEGIN), hints)) for number in numbers]
    return tuple(row for index, row in enumerate(rows) if row not in rows[:index])


def _time_of(number: int, times: EventTimes) -> dt.datetime:
    newest = BEGIN + times.step * (LATE - 1)
    if number == LATE:
        return newest - times.late
    return newest + times.far if number == FAR else BEGIN + times.step * number


def _to_row(schema: t.StructType, values: tuple[Any, ...]) -> Mapping[str, Any]:
    """Return values by the names of their columns, those of structs too."""
    return {
        column.name: _to_value(column.dataType, value)
        for column, value in zip(schema.fields, values, strict=True)
    }


def _to_value(kind: t.DataType, value: Any) -> Any:
    match kind:
        case t.StructType() if isinstance(value, tuple):
            return _to_row(kind, value)
        case t.ArrayType() if value is not None:
            return [_to_value(kind.elementType, item) for item in value]
        case t.MapType() if value is not None:
            return {key: _to_value(kind.valueType, item) for key, item in value.items()}
        case _:
            return value
