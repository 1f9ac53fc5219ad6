"""Values of a test file against values as Spark gives them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from pyspark.sql import Row

from millstream.testing.values.equality import is_equal

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

SAME = [
    (None, None),
    (True, True),
    (1, 1),
    (1.0, 1),
    (0.3, 0.1 + 0.2),
    (1, 1.0),
    ("NaN", float("nan")),
    ("-Infinity", float("-inf")),
    (0, 1e-12),
    # 0.1 as a FLOAT holds it.
    (0.1, 0.10000000149011612),
    (2.5, Decimal("2.50")),
    ("12345678901234567890.12", Decimal("12345678901234567890.12")),
    ("2026-01-01 12:00:00", NOON),
    ("2026-01-01T14:00:00+02:00", NOON),
    ("2026-01-01 12:00:00", datetime(2026, 1, 1, 12)),  # noqa: DTZ001 - Spark gives such for TIMESTAMP_NTZ
    ("2026-01-01 12:00:00", NOON.astimezone(timezone(timedelta(hours=5)))),
    ("2026-01-01", date(2026, 1, 1)),
    ("text", b"text"),
    ("/w==", bytearray(b"\xff")),
    ([1, 2], [1, 2]),
    ([], []),
    ({"a": 1}, {"a": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"A": 1}, {"a": 1, "b": 2}),
    ({}, {}),
    ({"1": "x"}, {1: "x"}),
    ({"b": 2}, Row(a=1, b=2)),
    ({"B": 2}, Row(a=1, b=2)),
    ([{"b": {"c": None}}], [Row(a=1, b=Row(c=None, d=1))]),
]
UNLIKE = [
    (None, 0),
    (0, None),
    ("", None),
    (1, True),
    (True, 1),
    ("true", True),
    (1, 2),
    (1.5, 1),
    (1.001, 1.0),
    ("x", 1.0),
    (2.51, Decimal("2.50")),
    ("1", "2"),
    (1, "1"),
    ("2026-01-01 12:00:01", NOON),
    ("noon", NOON),
    ("2026-01-01 00:00:00", date(2026, 1, 1)),
    ("other", b"text"),
    ([1, 2], [2, 1]),
    ([1], [1, 1]),
    ({}, {"a": 1}),
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"c": 2}, Row(a=1, b=2)),
    ({"a": None}, Row(b=1)),
    ("x", ["x"]),
]


@pytest.mark.parametrize(("wanted", "got"), SAME, ids=map(repr, SAME))
def test_what_is_meant_is_alike(wanted: object, got: object) -> None:
    assert is_equal(wanted, got, 1e-9)


@pytest.mark.parametrize(("wanted", "got"), UNLIKE, ids=map(repr, UNLIKE))
def test_what_is_another_value_is_not(wanted: object, got: object) -> None:
    assert not is_equal(wanted, got, 1e-9)


def test_a_tolerance_is_relative_to_what_is_wanted() -> None:
    assert is_equal(100.0, 101.0, 0.01)
    assert not is_equal(100.0, 101.1, 0.01)
