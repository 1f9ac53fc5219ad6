"""A run that dies in a case: each row reaches each sink once, wherever it died."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.testing.files.loader import load_text
from millstream.testing.runner.execute import run_case

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from millstream.testing.model import Outcome

SPEC = """
pipeline:
  name: shop
  sources:
    clicks:
      kafka: {{bootstrap_servers: "localhost:1", subscribe: clicks}}
      schema: {{id: string, at: timestamp}}
  queries:
    copies:
      from: clicks
      to: {to}
tests:
  one:
    sinks: {sinks}
    steps:
      - feed: {{clicks: [{{id: a}}]}}
        crash: {at}
        expect: {{"": [{{id: a}}], {first}: [{{id: a}}], {second}: [{{id: a}}]}}
      - crash: {at}
        expect: {{"": [], {first}: [], {second}: []}}
      - feed: {{clicks: [{{id: b}}]}}
        expect: {{"": [{{id: b}}], {first}: [{{id: b}}], {second}: [{{id: b}}]}}
"""
FILES = "[{delta: {path: lake/table}}, {parquet: {path: lake/files}}]"
TABLES = '[{{delta: {{path: lake/table}}}}, {{postgres: {{table: copies, url: "{url}", create: true}}}}]'


def run_test(spark: SparkSession, folder: Path, **words: str) -> Outcome:
    """The outcome of the case with these words in it."""
    suite = load_text("case.yml", SPEC.format(**words), folder / "case.yml", lambda _: {})
    assert [finding.message for finding in suite.findings] == []
    return run_case(spark, suite.cases[0], folder / "stage")


@pytest.mark.sweep("sinks", "at", cost=lambda sinks: 3 if sinks == "real" else 1)
@pytest.mark.parametrize("sinks", ["collected", "real"])
@pytest.mark.parametrize("at", ["before_sink", "delta", "parquet", "after_sink"])
def test_a_batch_that_died_reaches_each_sink_once(
    spark: SparkSession, tmp_path: Path, sinks: str, at: str
) -> None:
    outcome = run_test(spark, tmp_path, to=FILES, sinks=sinks, at=at, first="delta", second="parquet")

    assert outcome.fault is None
    assert [step_result.differences for step_result in outcome.results] == [(), (), ()]
    # Real sinks write beside what they name.
    assert not (tmp_path / "lake").exists()


# test_stack_cases.py plays runs that die before and after sinks on servers.
@pytest.mark.parametrize(
    "at",
    [
        pytest.param("delta", marks=pytest.mark.whole),
        "postgres",
        pytest.param("after_sink", marks=pytest.mark.whole),
    ],
)
def test_a_database_gets_a_batch_that_died_once(
    spark: SparkSession, tmp_path: Path, stack: Endpoints, at: str
) -> None:
    to = TABLES.format(url=stack.postgres)

    outcome = run_test(spark, tmp_path, to=to, sinks="real", at=at, first="delta", second="postgres")

    assert outcome.fault is None
    assert [step_result.differences for step_result in outcome.results] == [(), (), ()]
