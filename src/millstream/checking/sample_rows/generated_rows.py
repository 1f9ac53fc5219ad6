"""Rows for the sources of a script: in order and late, repeated, and one far ahead that closes every window."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

from millstream.connectors.api.values.time_pattern import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checking.sample_rows.column_hints import ColumnHints

BEGIN = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
_FILES, _ROWS = 4, 8
_STEP = dt.timedelta(minutes=5)
# Later than the delays of most watermarks, and earlier than one of a day.
_LATE = dt.timedelta(hours=3)
_FAR = dt.timedelta(days=40)
NULL_COLUMNS = 3
"""As many rows have a NULL, each in other columns."""
_IS_TIME = re.compile(r"time|date|_at$|_ts$|^ts$|^at$|_on$", re.IGNORECASE)
_IS_MILLISECONDS = re.compile(r"ms$|milli", re.IGNORECASE)


# Of a decimal of Spark.
_MAX_DIGITS = 38
_BITS = {t.ByteType: 8, t.ShortType: 16, t.IntegerType: 32, t.LongType: 64}


@dataclass(frozen=True)
class RowPlan:
    """The time of a row, and the number from which its values follow."""

    number: int
    time: dt.datetime
    null: int | None = None
    """Which columns are NULL, if they can be and are no times: every third one, beginning with this one."""


def plan_rows() -> list[list[RowPlan]]:
    """Return the rows of each file, in the order in which they arrive.

    12:00  12:05  12:10  09:15  12:20  12:20  …      in the later files, the fourth row is late
    +40 days                                         in the last file
    """
    files = []
    for file in range(_FILES):
        rows = []
        for position in range(_ROWS):
            # The sixth row repeats the fifth.
            number = file * _ROWS + (4 if position == 5 else position)
            time = BEGIN + _STEP * number
            rows.append(RowPlan(number, time - _LATE if position == 3 and file >= 2 else time))
        files.append(rows)
    return [*files, [RowPlan(_FILES * _ROWS, BEGIN + _FAR)]]


def build_row(schema: t.StructType, row: RowPlan, hints: ColumnHints) -> tuple[Any, ...]:
    """Return the values of a row, in the order of the columns."""
    return tuple(
        None
        if index % NULL_COLUMNS == row.null and _can_be_null(column, hints)
        else _value(column.dataType, column.name, row, hints)
        for index, column in enumerate(schema.fields)
    )


def _can_be_null(column: t.StructField, hints: ColumnHints) -> bool:
    is_time = isinstance(column.dataType, t.TimestampType | t.TimestampNTZType | t.DateType)
    named = _IS_TIME.search(column.name) or column.name.lower() in hints.times
    return column.nullable and not is_time and not named


def build_message(schema: t.StructType | None, row: RowPlan, hints: ColumnHints) -> bytes:
    """Return a message in JSON with these columns; words, if nothing says what a message is."""
    if schema is None:
        return b"alpha beta 1" if row.number % 2 else b"beta gamma 2"
    return json.dumps(_plain(schema, build_row(schema, row, hints))).encode()


def _value(kind: t.DataType, name: str, row: RowPlan, hints: ColumnHints) -> Any:
    number = row.number
    match kind:
        case t.StringType() | t.VarcharType() | t.CharType():
            return _text(name, row, hints)
        case t.TimestampType():
            return row.time
        case t.TimestampNTZType():
            return row.time.replace(tzinfo=None)
        case t.DateType():
            return row.time.date()
        case t.BooleanType():
            return number % 2 == 0
        case t.LongType() if _IS_TIME.search(name) or _IS_MILLISECONDS.search(name):
            seconds = int(row.time.timestamp())
            return seconds * 1000 if _IS_MILLISECONDS.search(name) else seconds
        case t.IntegralType():
            bits = _BITS[type(kind)]
            numbers = [int(near) for near in _list_near(name, hints) if abs(near) < 2 ** (bits - 1)]
            return _choose([*numbers, 1, 2, 3, 4], number)
        case t.DecimalType():
            step, digits = Decimal(1).scaleb(-kind.scale), kind.precision - kind.scale
            near = [value for value in _list_near(name, hints) if abs(value) < 10**digits]
            rounded = [value.quantize(step, context=Context(prec=_MAX_DIGITS)) for value in near]
            tenths = [Decimal(digit).scaleb(-min(kind.scale, 1)) for digit in range(7)]
            return _choose([*rounded, *tenths], number)
        case t.FractionalType():
            values = [*map(float, _list_near(name, hints)), *(digit * 1.5 for digit in range(7))]
            return _choose(values, number)
        case t.BinaryType():
            return f"k{number % 4}".encode()
        case t.ArrayType():
            following = RowPlan(number + 1, row.time)
            return [_value(kind.elementType, name, entry, hints) for entry in (row, following)]
        case t.MapType():
            return {_value(kind.keyType, "key", row, hints): _value(kind.valueType, "value", row, hints)}
        case t.StructType():
            return build_row(kind, row, hints)
        case _:
            return None


def _text(name: str, row: RowPlan, hints: ColumnHints) -> str:
    key = name.lower()
    if key in hints.times or (_IS_TIME.search(name) and key not in hints.literals):
        return _time_text(row.time, hints.times.get(key, ""))
    # A text that is a number too passes a cast.
    near = [str(value) for value in _list_near(name, hints)]
    return str(_choose([*dict.fromkeys([*hints.literals.get(key, ()), *near]), "1", "2", "3"], row.number))


def _time_text(time: dt.datetime, pattern: str) -> str:
    """Write a time in a pattern; in ISO 8601 without one, and if the pattern has a field that is not supported."""
    with contextlib.suppress(ValueError):
        if pattern:
            return format_time(time, pattern)
    return time.strftime("%Y-%m-%dT%H:%M:%S")


def _list_near(name: str, hints: ColumnHints) -> list[Decimal]:
    """Return the numbers that a query compares a column with, and for each the next smaller and greater one."""
    numbers = []
    for literal in dict.fromkeys(hints.literals.get(name.lower(), ())):
        with contextlib.suppress(ArithmeticError):
            number = Decimal(literal.strip())
            numbers += [number + 1, number, number - 1] if number.is_finite() else []
    return numbers


def _choose(values: Sequence[Any], number: int) -> Any:
    return values[number % len(values)]


def _plain(kind: t.DataType, value: Any) -> Any:
    """Return a value as JSON has it."""
    match value:
        case tuple():
            assert isinstance(kind, t.StructType)
            columns: Sequence[t.StructField] = kind.fields
            return {
                column.name: _plain(column.dataType, item)
                for column, item in zip(columns, value, strict=True)
            }
        case list():
            assert isinstance(kind, t.ArrayType)
            return [_plain(kind.elementType, item) for item in value]
        case dict():
            assert isinstance(kind, t.MapType)
            return {str(key): _plain(kind.valueType, item) for key, item in value.items()}
        case dt.datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%S") + ("Z" if value.tzinfo else "")
        case dt.date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes():
            return value.decode()
        case _:
            return value
