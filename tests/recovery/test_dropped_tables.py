"""A table of Postgres or DuckDB that was dropped: the ledger beside it has the numbers of batches that are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import psycopg
import pytest

from millstream.backfill.batches import backfill_batches
from millstream.engine.run import RunOptions
from spark.conftest import Project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from millstream.pipeline.model import Pipeline

pytestmark = pytest.mark.usefixtures("small_batches")


class Database:
    """One table with its ledger: drop it, read it."""

    def __init__(self, sink: dict[str, Any], execute: Callable[[str], list[tuple[Any, ...]]]) -> None:
        self.sink, self.execute = sink, execute

    def drop(self) -> None:
        self.execute("DROP TABLE purchases")

    def ids(self) -> list[str]:
        return [id_ for (id_,) in self.execute("SELECT id FROM purchases ORDER BY id")]


@pytest.fixture(params=["postgres", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "duckdb":
        file = tmp_path / "shop.duckdb"

        def execute(statement: str) -> list[tuple[Any, ...]]:
            with duckdb.connect(str(file)) as connection:
                return connection.execute(statement).fetchall()

        return Database({"duckdb": {"path": str(file), "table": "purchases"}}, execute)
    stack: Endpoints = request.getfixturevalue("stack")
    settings = {"url": stack.postgres, "table": "public.purchases", "ledger_schema": "purchases_ledger"}

    def execute_there(statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(stack.postgres, options="-c search_path=public") as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    execute_there("DROP TABLE IF EXISTS purchases")
    return Database({"postgres": settings}, execute_there)


def run(project: Project, database: Database, **options: Any) -> bool:
    return project.run(pipeline_of(project, database), RunOptions(until_caught_up=True, **options))


def pipeline_of(project: Project, database: Database) -> Pipeline:
    return project.pipeline(queries={"copy": {"from": "orders", "to": [database.sink]}})


def add(project: Project, *ids: str) -> None:
    for id_ in ids:
        project.add_lines({"id": id_, "amount": 1, "at": "2026-01-01T12:01:00Z"})


def test_the_batches_of_a_dropped_table_are_named_and_a_backfill_writes_them(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    project = Project(tmp_path, spark)
    add(project, "a", "b")
    assert run(project, database)
    database.drop()
    add(project, "c")

    assert not run(project, database)

    (failed,) = project.list_events("query_failed")
    assert "lacks batches 0 to 1 of query 'copy'" in failed.data["reason"]
    report = backfill_batches(spark, pipeline_of(project, database), "copy", [0, 1], print)
    assert [(outcome.batch, outcome.rows) for outcome in report.outcomes] == [(0, 1), (1, 1)]
    assert run(project, database)
    assert run(project, database)
    assert database.ids() == ["a", "b", "c"]


def test_a_dropped_table_whose_batches_are_given_up_gets_the_next_ones(
    database: Database, spark: SparkSession, tmp_path: Path
) -> None:
    project = Project(tmp_path, spark)
    add(project, "a", "b")
    assert run(project, database)
    # The last batch is replayed: it is planned, and was in the table that is gone.
    project.forget_last_commit("copy")
    database.drop()

    assert run(project, database, adopt=True)
    add(project, "c")
    assert run(project, database)

    assert database.ids() == ["b", "c"]
