"""Statements of Databricks in Spark's words, each of the same length and on the same lines."""

from __future__ import annotations

import pytest

from millstream.checking.scripts.declarative.databricks_sql import in_words_of_spark
from millstream.checking.scripts.declarative.expectations import DeclaredExpectation
from millstream.checking.scripts.interception.absent import MARK
from millstream.spec.expectation import Otherwise

SAME = "CREATE STREAMING TABLE t AS SELECT 1 AS a"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE OR REFRESH STREAMING TABLE t AS SELECT 1", "CREATE STREAMING TABLE t AS SELECT 1"),
        ("CREATE OR REFRESH\nSTREAMING LIVE TABLE t AS SELECT 1", "CREATE STREAMING TABLE t AS SELECT 1"),
        ("create or replace streaming live table t as select 1", "create streaming table t as select 1"),
        ("CREATE LIVE TABLE t AS SELECT 1", "CREATE TABLE t AS SELECT 1"),
        ("CREATE TEMPORARY STREAMING LIVE VIEW v AS SELECT 1", "CREATE TEMPORARY VIEW v AS SELECT 1"),
        ("CREATE INCREMENTAL LIVE TABLE t AS SELECT 1", "CREATE STREAMING TABLE t AS SELECT 1"),
        ("CREATE INCREMENTAL LIVE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 1"),
        ("CREATE TEMPORARY LIVE TABLE t AS SELECT 1", "CREATE TABLE t AS SELECT 1"),
        ("CREATE PRIVATE STREAMING TABLE t AS SELECT 1", "CREATE STREAMING TABLE t AS SELECT 1"),
        ("APPLY CHANGES INTO t FROM STREAM(s)", "AUTO CDC INTO t FROM STREAM(s)"),
        (
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('/a')",
            "CREATE STREAMING TABLE t AS SELECT * FROM read_files('/a')",
        ),
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a IN (1, 2) AND b = ')')) AS SELECT 1",
            "CREATE STREAMING TABLE t AS SELECT 1",
        ),
        (
            "CREATE STREAMING TABLE t (a INT, CONSTRAINT c EXPECT (a > 1) ON VIOLATION FAIL UPDATE)",
            "CREATE STREAMING TABLE t (a INT )",
        ),
        (
            "CREATE STREAMING TABLE t (a INT, CONSTRAINT c EXPECT (a > 1), b INT)",
            "CREATE STREAMING TABLE t (a INT, b INT)",
        ),
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a > 1), a INT)",
            "CREATE STREAMING TABLE t ( a INT)",
        ),
        (
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a > 1), CONSTRAINT d EXPECT (a < 9)) COMMENT 'x'",
            "CREATE STREAMING TABLE t COMMENT 'x'",
        ),
        (
            "CREATE LIVE TABLE t (a INT COMMENT 'x)',\nb DECIMAL(4, 2)) USING DELTA LOCATION '/t' AS\nSELECT 1, 2",
            "CREATE TABLE t USING DELTA AS SELECT 1, 2",
        ),
        (
            "CREATE INCREMENTAL LIVE TABLE t (a INT) LOCATION '/t' COMMENT 'x' AS --y\nSELECT 'LOCATION' AS b",
            "CREATE STREAMING TABLE t (a INT) COMMENT 'x' AS --y SELECT 'LOCATION' AS b",
        ),
        (
            "CREATE LIVE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1)) AS SELECT 1 AS a",
            "CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a + 1)) AS SELECT 1 AS a",
        ),
        ("SELECT 'CREATE LIVE TABLE t'", "SELECT 'CREATE LIVE TABLE t'"),
        (SAME, SAME),
    ],
)
def test_a_statement_has_the_words_of_spark_in_its_own_places(statement: str, words: str) -> None:
    found = in_words_of_spark(statement)

    assert found.text.split() == words.split()
    assert [len(line) for line in found.text.split("\n")] == [len(line) for line in statement.split("\n")]
    assert found.text == found.text.lstrip()
    assert found.is_changed == (statement.split() != words.split())


@pytest.mark.parametrize(
    ("statement", "is_live_table"),
    [("CREATE LIVE TABLE t AS SELECT 1", True), ("CREATE STREAMING LIVE TABLE t AS SELECT 1", False)],
)
def test_a_live_table_that_is_no_stream_is_a_view_that_spark_stores(
    statement: str, *, is_live_table: bool
) -> None:
    assert in_words_of_spark(statement).is_live_table == is_live_table


def test_the_expectations_of_a_statement_have_their_labels_conditions_and_actions() -> None:
    found = in_words_of_spark(
        "CREATE STREAMING TABLE t (CONSTRAINT `is (1)` EXPECT (a IN (1)) ON VIOLATION DROP ROW,"
        " CONSTRAINT b EXPECT (b > ${least}) on violation fail update, CONSTRAINT c EXPECT (c)) AS SELECT 1",
        {"least": "5"},
    )

    assert found.expectations == (
        DeclaredExpectation("is (1)", "a IN (1)", Otherwise.DROP),
        DeclaredExpectation("b", "b > 5", Otherwise.FAIL),
        DeclaredExpectation("c", "c", Otherwise.WARN),
    )


def test_a_setting_of_the_pipeline_has_its_value_or_a_stand_in() -> None:
    found = in_words_of_spark(
        "CREATE STREAMING TABLE ${own.schema}.t AS SELECT * FROM ${raw}.s", {"raw": "port"}
    )

    assert found.text == f"CREATE STREAMING TABLE {MARK}.t AS SELECT * FROM port.s"
