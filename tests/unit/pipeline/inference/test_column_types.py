from __future__ import annotations

from typing import Any

import pytest

from millstream.pipeline.inference.column_types import observe


def type_of(*values: Any) -> str:
    return observe([{"a": value} for value in values]).fields["a"].type


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, None], "boolean"),
        ([1, 2**31], "bigint"),
        ([1, 2**63], "decimal(38,0)"),
        ([1, 1.5], "double"),
        ([1, "1"], "string"),
        ([True, 1], "string"),
        ([None], "string"),
        (["2026-01-31"], "date"),
        (["2026-01-31T12:00:00Z", "2026-01-31 12:00:00.123", "2026-01-31T12:00:00+01:00"], "timestamp"),
        (["2026-01-31", "2026-01-31T12:00:00Z"], "timestamp"),
        (["2026-01-31", "soon"], "string"),
        (["31.01.2026"], "string"),
        ([[1], [], [None]], "array<bigint>"),
        ([[]], "array<string>"),
        ([[1], 1], "string"),
        ([{"x": 1}, {"y": "a"}], "struct<x: bigint, y: string>"),
        ([{"x y": [{"z": 1.5}]}], "struct<`x y`: array<struct<z: double>>>"),
        ([{}], "map<string, string>"),
        ([{"x": 1}, [1]], "string"),
    ],
)  # fmt: skip
def test_a_type_holds_all_values(values: list[Any], kind: str) -> None:
    assert type_of(*values) == kind


def test_an_object_whose_keys_are_data_is_a_map() -> None:
    assert type_of(*({f"user-{number}": number} for number in range(40))) == "map<string, bigint>"


def test_a_mixture_that_only_a_text_holds_is_reported() -> None:
    columns = observe(
        [{"code": 1, "name": "a", "day": "2026-01-31"}, {"code": "x", "name": None, "day": "-"}]
    ).fields

    assert {name for name, column in columns.items() if column.is_mixed} == {"code"}


def test_missing_and_null_values_are_counted() -> None:
    observed = observe([{"a": 1, "b": 1}, {"a": None}, {"a": 2, "b": 2}])

    assert observed.fields["a"].nulls == 1
    assert observed.count - observed.fields["b"].count == 1
