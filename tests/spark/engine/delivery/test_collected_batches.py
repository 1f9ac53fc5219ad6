"""A small batch for several sinks is executed once and written without Spark; each sink has each row once."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from pyspark.sql.classic.dataframe import DataFrame

from millstream.connectors.api.dead_letters import read_unique
from millstream.connectors.files.writer import FilesWriter
from millstream.connectors.postgres.writer import PostgresWriter
from millstream.diagnostics.failure import Outage
from millstream.spark import internals

if TYPE_CHECKING:
    from millstream.connectors.api.writer import WriteResult
    from millstream.devstack.supervisor.state import Endpoints
    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

BATCHES = [
    [{"id": name, "amount": number, "at": f"2026-01-01T12:0{number}:00Z"}, "{broken"]
    for number, name in enumerate(("a", "b", "c=d"))
]
IDS = [(name,) for name in ("a", "b", "c=d")]


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the batches that were written to files from the driver's memory."""
    batches: list[int] = []
    write_rows = FilesWriter.write_rows

    def note(self: FilesWriter, rows: Any, batch_id: int) -> WriteResult:
        batches.append(batch_id)
        return write_rows(self, rows, batch_id)

    monkeypatch.setattr(FilesWriter, "write_rows", note)
    return batches


def pipeline_into(project: Project, *sinks: dict[str, Any]) -> Pipeline:
    return project.pipeline(views={}, queries={"copy": {"from": "orders", "to": list(sinks)}})


def two_folders(project: Project) -> Pipeline:
    return pipeline_into(
        project,
        {"parquet": str(project.folder / "files")},
        {"parquet": {"path": str(project.folder / "by_id"), "partition_by": ["id"], "layout": "by_batch"}},
    )


def add_batches(project: Project) -> None:
    for lines in BATCHES:
        project.add_lines(*lines)


def rows_of(project: Project, name: str) -> list[tuple[Any, ...]]:
    frame = project.spark.read.schema("id string, amount int, at timestamp").parquet(
        str(project.folder / name)
    )
    return sorted(tuple(row) for row in frame.select("id", "amount").collect())


EXPECTED = [(name, number) for number, (name,) in enumerate(IDS)]


def test_after_a_small_batch_one_job_does_for_two_sinks(project: Project, collected: list[int]) -> None:
    pipeline = two_folders(project)
    add_batches(project)
    jobs: list[int] = []

    def count(event: Any) -> None:
        if event.event in ("batch_started", "batch_committed"):
            jobs.append(internals.count_jobs(project.spark.sparkContext))

    assert project.run(pipeline, on_event=count)

    assert collected == [1, 1, 2, 2]
    assert jobs[3] - jobs[2] == 1 < jobs[1] - jobs[0]
    assert rows_of(project, "files") == rows_of(project, "by_id") == EXPECTED
    assert len(read_unique(pipeline.letters)) == 3
    committed = project.list_events("batch_committed")
    assert [(event.data["rows_out"], event.data["malformed"]) for event in committed[:3]] == [(1, 1)] * 3


def test_a_batch_that_is_too_large_for_the_driver_is_executed_again_and_counted_once(
    project: Project, collected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = two_folders(project)
    add_batches(project)
    to_arrow = DataFrame.toArrow

    def refuse(frame: DataFrame) -> None:
        to_arrow(frame)
        raise RuntimeError("is bigger than spark.driver.maxResultSize")

    monkeypatch.setattr(DataFrame, "toArrow", refuse)

    assert project.run(pipeline)

    assert collected == []
    assert rows_of(project, "files") == rows_of(project, "by_id") == EXPECTED
    assert [letter.value for letter in read_unique(pipeline.letters)] == [b"{broken"] * 3
    committed = project.list_events("batch_committed")
    assert [(event.data["rows_out"], event.data["malformed"]) for event in committed[:3]] == [(1, 1)] * 3


def test_a_collected_batch_that_one_sink_has_is_repeated_for_the_other_one(
    project: Project, stack: Endpoints, collected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"orders_{uuid.uuid4().hex[:8]}"
    sink = {"url": stack.postgres, "table": table, "merge_on": ["id"], "ledger_schema": table}
    pipeline = pipeline_into(project, {"parquet": str(project.folder / "files")}, {"postgres": sink})
    add_batches(project)
    write_rows, failed = PostgresWriter.write_rows, []

    def fail_once(self: PostgresWriter, rows: Any, batch_id: int) -> WriteResult:
        if batch_id == 2 and not failed:
            failed.append(batch_id)
            raise Outage("the server is away", "start it")
        return write_rows(self, rows, batch_id)

    monkeypatch.setattr(PostgresWriter, "write_rows", fail_once)

    assert project.run(pipeline)

    assert (failed, collected) == ([2], [1, 2])
    assert rows_of(project, "files") == EXPECTED
    with psycopg.connect(stack.postgres) as connection:
        assert connection.execute(f"SELECT id, amount FROM {table} ORDER BY id").fetchall() == EXPECTED
    assert len(read_unique(pipeline.letters)) == 3


@pytest.mark.parametrize(
    "other",
    [{"json": {}}, {"parquet": {"options": {"parquet.block.size": 4096}}}, {"delta": {}}],
    ids=lambda other: next(iter(other)),
)
def test_if_one_sink_needs_spark_no_batch_is_collected(
    other: dict[str, Any], project: Project, collected: list[int]
) -> None:
    (kind, settings), path = *other.items(), str(project.folder / "other")
    pipeline = pipeline_into(
        project, {"parquet": str(project.folder / "files")}, {kind: {"path": path, **settings}}
    )
    for lines in BATCHES[:2]:
        project.add_lines(*lines)

    assert project.run(pipeline)

    assert collected == []
    assert rows_of(project, "files") == EXPECTED[:2]
