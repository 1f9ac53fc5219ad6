"""Types as DDL, taken apart."""

from __future__ import annotations

import pytest

from millstream.connectors.api.ddl import outer_type, type_names


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        ("string", ["string"]),
        ("decimal(10,2)", ["decimal"]),
        ("interval", ["interval"]),
        ("interval day to second", ["span"]),
        ("time(6)", ["time"]),
        ("array<void>", ["array", "void"]),
        ("map<string,array<int>>", ["map", "string", "array", "int"]),
        ("struct<start:timestamp,end:timestamp>", ["struct", "timestamp", "timestamp"]),
        ("struct<interval:int,m:map<int,decimal(3,1)>>", ["struct", "int", "map", "int", "decimal"]),
        ("struct<>", ["struct"]),
    ],
)
def test_every_type_inside_a_type_is_named_and_no_field(ddl: str, names: list[str]) -> None:
    assert list(type_names(ddl)) == names


def test_the_outer_name_stands_alone() -> None:
    assert outer_type("Decimal(10,2)") == "decimal"
