"""The test files of the examples that stand on servers: they pass with the real tables and topics, and leave none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from millstream.testing.files.loader import Suite, load
from millstream.testing.model import Crash
from millstream.testing.runner.execute import run_case
from millstream.testing.runner.failure_report import format_report

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

FILES = sorted((Path(__file__).parents[3] / "examples").glob("*/stack/*.yml"))


def read(file: Path, env: Mapping[str, str]) -> Suite:
    return load(file, lambda _: env)


NAMES = [
    pytest.param(file, case.name, id=f"{file.parents[1].name}: {case.name}")
    for file in FILES
    for case in read(file, {}).cases
]


def list_leftovers(stack: Endpoints) -> set[str]:
    """Tables and topics that there are."""
    with psycopg.connect(stack.postgres) as connection:
        tables = connection.execute("SELECT schemaname || '.' || tablename FROM pg_tables").fetchall()
    topics = AdminClient({"bootstrap.servers": stack.kafka}).list_topics(timeout=60).topics
    # The broker's own begin with two underscores, and stay.
    return {*(name for (name,) in tables), *(name for name in topics if not name.startswith("__"))}


def features(file: Path, name: str) -> list[Hashable]:
    """Each example; each sink that is looked at, in each mode; each place of a crash."""
    case = next(item for item in read(file, {}).cases if item.name == name)
    mode = case.pipeline.queries[case.query].output_mode
    return [
        file.parent.parent.name,
        *((mode, row) for step in case.steps for row in step.expected.rows),
        *((mode, action.at) for step in case.steps for action in step.actions if isinstance(action, Crash)),
    ]


@pytest.mark.sweep(by=features)
@pytest.mark.parametrize(("file", "name"), NAMES)
def test_a_case_on_real_servers_passes_and_leaves_nothing(
    file: Path, name: str, spark: SparkSession, stack: Endpoints, tmp_path: Path
) -> None:
    suite = read(file, {"KAFKA": stack.kafka, "POSTGRES_URL": stack.postgres})
    case = next(item for item in suite.cases if item.name == name)
    before = list_leftovers(stack)

    outcome = run_case(spark, case, tmp_path)

    assert case.has_real_sinks
    assert outcome.has_passed, format_report(outcome)
    assert list_leftovers(stack) == before
