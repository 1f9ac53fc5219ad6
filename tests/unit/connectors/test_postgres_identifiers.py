"""Names that Postgres takes, and names that would do harm or be cut."""

from __future__ import annotations

import pytest

from millstream.connectors.postgres.client.identifiers import column_problem, split_table_name, table_problem


@pytest.mark.parametrize("name", ["purchases", "sales.purchases", "_t", "T1$"])
def test_plain_tables_are_taken(name: str) -> None:
    assert table_problem(name) == ""


@pytest.mark.parametrize(
    "name", ["", "a.b.c", 'a";drop table x;--', "a b", "1a", "a.", ".a", "x" * 64, "täble", "a\0b", "a\n"]
)
def test_other_tables_are_refused(name: str) -> None:
    assert table_problem(name)


@pytest.mark.parametrize("name", ["user id", 'quo"te', "größe", "x" * 63])
def test_columns_are_quoted_so_most_texts_name_one(name: str) -> None:
    assert column_problem(name) == ""


@pytest.mark.parametrize("name", ["", "a\0", "x" * 64, "ü" * 32])
def test_columns_that_postgres_would_cut_are_refused(name: str) -> None:
    assert column_problem(name)


def test_a_table_without_schema_is_in_public() -> None:
    assert split_table_name("t") == ("public", "t")
    assert split_table_name("s.t") == ("s", "t")
