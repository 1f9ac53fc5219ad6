"""Before the first test of a session of its own the JVM is warmed by one that nobody hears of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext

from millstream.testing.files.loader import load_text
from millstream.testing.harness import session
from millstream.testing.runner import warm_up
from millstream.testing.runner.runner import Runner

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.testing.model import Case

RATE = """
pipeline: {name: one, sources: {r: {rate: {}}}, queries: {r: {output_mode: append, to: {console: {}}}}}
tests:
  a row comes through: {steps: [{feed: {r: [{value: 1}]}, expect: [{value: 1}]}]}
"""


def case(folder: Path) -> Case:
    (actual,) = load_text("one.yml", RATE, folder / "one.yml", lambda _: {}).cases
    return actual


def names_of_tables(spark: SparkSession) -> set[str]:
    """The names alone: `catalog.listTables` looks into each view, and fails over one whose files are gone."""
    return {row.tableName for row in spark.sql("SHOW TABLES").collect()}


def test_the_warming_test_passes_and_leaves_nothing_behind(spark: SparkSession) -> None:
    before = names_of_tables(spark)
    running = {query.runId for query in spark.streams.active}

    assert warm_up.warm(spark)

    assert {query.runId for query in spark.streams.active} <= running
    assert names_of_tables(spark) == before


@pytest.mark.usefixtures("spark")
def test_a_session_that_ran_before_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[SparkSession] = []
    monkeypatch.setattr(warm_up, "warm", warmed.append)

    with Runner() as runner:
        (result,) = runner.all([case(tmp_path)])

    assert result.outcome == "passed"
    assert warmed == []


def test_a_session_of_its_own_is_warmed_once_and_not_among_the_results(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[SparkSession] = []
    there = SparkContext._active_spark_context

    def opened(_: object) -> SparkSession:
        monkeypatch.setattr(SparkContext, "_active_spark_context", there)
        return spark

    monkeypatch.setattr(warm_up, "warm", warmed.append)

    monkeypatch.setattr(session, "open_tests", opened)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    runner = Runner()
    results = [*runner.all([case(tmp_path)]), *runner.all([case(tmp_path)])]

    assert warmed == [spark]
    assert [result.name for result in results] == ["a row comes through"] * 2
