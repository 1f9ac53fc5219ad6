"""What happens to Spark's types in a column of Postgres; each row was tried with COPY on PostgreSQL 18."""

from __future__ import annotations

import pytest

from millstream.connectors.postgres.copy.types import find_mismatch

FITS = [
    ("int", "bigint"),
    ("int", "real"),
    ("bigint", "numeric"),
    ("smallint", "numeric(6,1)"),
    ("decimal(9,0)", "integer"),
    ("decimal(10,2)", "numeric(12,2)"),
    ("double", "numeric"),
    ("float", "double precision"),
    ("date", "timestamp with time zone"),
    ("timestamp", "timestamp(3) with time zone"),
    ("timestamp", "timestamp without time zone"),
    ("boolean", "boolean"),
    ("boolean", "integer"),
    ("array<int>", "jsonb[]"),
    ("string", "character varying(3)"),
    ("string", "uuid"),
    ("struct<a:int>", "jsonb"),
    ("array<int>", "text"),
    ("array<int>", "bigint[]"),
    ("array<string>", "text[]"),
    ("array<array<int>>", "jsonb[]"),
    ("array<struct<a:int>>", "character varying(9)[]"),
    ("binary", "bytea"),
    ("string", "mood"),
]
SOME = [
    ("bigint", "integer"),
    ("decimal(10,0)", "integer"),
    ("int", "numeric(6,2)"),
    ("double", "real"),
    ("double", "integer"),
    ("decimal(10,2)", "bigint"),
    ("int", "boolean"),
    ("timestamp", "time without time zone"),
    ("double", "numeric(6,2)"),
    ("decimal(10,4)", "numeric(12,2)"),
    ("timestamp", "date"),
    ("timestamp_ntz", "timestamp with time zone"),
    ("string", "integer"),
    ("string", "text[]"),
    ("array<bigint>", "integer[]"),
    ("array<timestamp>", "date[]"),
]
NONE = [
    ("bigint", "boolean"),
    ("bigint", "date"),
    ("boolean", "bigint"),
    ("date", "bytea"),
    ("date", "time without time zone"),
    ("int", "jsonb"),
    ("date", "integer"),
    ("timestamp", "jsonb"),
    ("int", "uuid"),
    ("struct<a:int>", "integer"),
    ("binary", "boolean"),
    ("map<string,int>", "text[]"),
    ("array<array<int>>", "integer[]"),
    ("int", "integer[]"),
    ("array<double>", "integer[]"),
    ("array<decimal(10,2)>", "bigint[]"),
    ("array<boolean>", "integer[]"),
]


@pytest.mark.parametrize(("given", "held"), FITS)
def test_a_type_whose_values_all_fit_is_let_through(given: str, held: str) -> None:
    assert find_mismatch(given, held) is None


@pytest.mark.parametrize(("given", "held"), SOME)
def test_a_type_of_which_some_values_do_not_fit_is_told(given: str, held: str) -> None:
    mismatch = find_mismatch(given, held)

    assert mismatch is not None
    assert not mismatch.accepts_nothing


@pytest.mark.parametrize(("given", "held"), NONE)
def test_a_type_of_which_no_value_fits_is_told_as_such(given: str, held: str) -> None:
    mismatch = find_mismatch(given, held)

    assert mismatch is not None
    assert mismatch.accepts_nothing


@pytest.mark.parametrize(
    ("given", "held", "fitting"),
    [
        ("bigint", "integer", "bigint"),
        ("array<bigint>", "integer[]", "bigint[]"),
        ("decimal(10,4)", "numeric(12,2)", "numeric(10,4)"),
    ],
)
def test_the_type_that_would_do_is_named(given: str, held: str, fitting: str) -> None:
    mismatch = find_mismatch(given, held)

    assert mismatch is not None
    assert mismatch.fitting_type == fitting
