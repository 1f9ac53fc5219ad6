"""Generated rows have values on both sides of those that the queries compare, and NULLs where they are planned."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types as t

from millstream.checking.sample_rows.column_hints import ColumnHints
from millstream.checking.sample_rows.generated_rows import BEGIN, RowPlan, build_row


def values(kind: t.DataType, *literals: str) -> list[Any]:
    """The values of a column `a` in as many rows as a generated test has."""
    hints = ColumnHints()
    hints.literals["a"] += literals
    schema = t.StructType([t.StructField("a", kind)])
    return [build_row(schema, RowPlan(number, BEGIN), hints)[0] for number in range(9)]


@pytest.mark.parametrize(
    ("kind", "literal", "near"),
    [
        (t.IntegerType(), "100", [101, 100, 99]),
        (t.LongType(), "-5000000000", [-4999999999, -5000000000, -5000000001]),
        (t.ByteType(), "127", [127, 126]),
        (t.DoubleType(), "100.5", [101.5, 100.5, 99.5]),
        (t.FloatType(), " 3", [4.0, 3.0, 2.0]),
        (t.DecimalType(5, 2), "999.5", [Decimal("999.50"), Decimal("998.50")]),
        (t.DecimalType(38, 18), "1E15", [Decimal(10**15) + 1, Decimal(10**15), Decimal(10**15) - 1]),
        (t.StringType(), "100", ["100", "101", "99"]),
    ],
)
def test_a_number_that_is_compared_comes_with_those_next_to_it(
    kind: t.DataType, literal: str, near: list[object]
) -> None:
    assert values(kind, literal)[: len(near)] == near


@pytest.mark.parametrize("kind", [t.IntegerType(), t.DoubleType(), t.DecimalType(5, 2)])
def test_a_text_that_is_no_finite_number_gives_a_number_nothing(kind: t.DataType) -> None:
    assert values(kind, "sale", "NaN", "Infinity", "true") == values(kind)


@pytest.mark.parametrize(
    ("null", "row"),
    [
        (None, (1, "1", 0.0, True)),
        (0, (None, "1", 0.0, None)),
        (1, (1, None, 0.0, True)),
        (2, (1, "1", None, True)),
    ],
)
def test_every_third_column_of_a_row_is_null(null: int | None, row: tuple[object, ...]) -> None:
    kinds = (t.IntegerType(), t.StringType(), t.DoubleType(), t.BooleanType())
    schema = t.StructType([t.StructField(f"c{number}", kind) for number, kind in enumerate(kinds)])

    assert build_row(schema, RowPlan(0, BEGIN, null), ColumnHints()) == row


def test_a_time_and_a_column_that_cannot_be_null_have_values() -> None:
    columns = [
        t.StructField("seen", t.TimestampType()),
        t.StructField("updated_at", t.LongType()),
        t.StructField("day", t.DateType()),
        t.StructField("read", t.StringType()),
        t.StructField("id", t.IntegerType(), nullable=False),
    ]
    hints = ColumnHints(times={"read": ""})

    rows = [build_row(t.StructType(columns), RowPlan(0, BEGIN, null), hints) for null in range(3)]

    assert not any(value is None for row in rows for value in row)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("", "2026-01-01T13:05:00"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-01-01T13:05:00.000Z"),
        ("dd/MMM/yyyy:HH:mm:ss Z", "01/Jan/2026:13:05:00 +0000"),
        ("EEE MMM dd HH:mm:ss yyyy", "Thu Jan 01 13:05:00 2026"),
        ("EEEE, d MMMM yyyy", "Thursday, 1 January 2026"),
        ("yyyyMMddHHmmssSSS", "20260101130500000"),
        ("M/d/yyyy H:mm", "1/1/2026 13:05"),
        ("hh:mm:ss a 'o''clock'", "01:05:00 PM o'clock"),
        ("yy-MM-dd[ HH:mm]", "26-01-01 13:05"),
        ("yyyy-MM-dd HH:mm:ssxxx", "2026-01-01 13:05:00+00:00"),
        ("yyyy-MM-dd qqq", "2026-01-01T13:05:00"),
    ],
)
def test_a_text_with_a_time_has_the_pattern_with_which_the_script_reads_it(pattern: str, text: str) -> None:
    schema = t.StructType([t.StructField("read", t.StringType())])
    row = RowPlan(0, BEGIN + dt.timedelta(hours=1, minutes=5))

    assert build_row(schema, row, ColumnHints(times={"read": pattern})) == (text,)
