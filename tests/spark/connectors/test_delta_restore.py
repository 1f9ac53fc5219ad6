"""A Delta table that was restored to an older version: its log still has the numbers of the batches that are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from delta_tables import read_rows
from millstream.backfill.batches import backfill_batches
from millstream.connectors.api.batch_ledger import BatchMetadata
from millstream.connectors.api.writer import SinkIdentity
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.engine.run import RunOptions
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark.conftest import Project

pytestmark = pytest.mark.usefixtures("interpreted", "small_batches")

ROWS = [{"id": id_, "amount": 1, "at": "2026-01-01T12:01:00Z"} for id_ in "abcd"]
WAYS: dict[str, tuple[OutputMode, dict[str, Any]]] = {
    "append": (OutputMode.APPEND, {}),
    "complete": (OutputMode.COMPLETE, {}),
    "merge": (OutputMode.UPDATE, {"merge_on": ["id"]}),
}


def restore_to_version(spark: SparkSession, table: Path, version: int) -> None:
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {version}")


def restore_to_time(spark: SparkSession, table: Path, version: int) -> None:
    history = spark.sql(f"DESCRIBE HISTORY delta.`{table}`").where(f"version = {version}")
    (time,) = history.selectExpr("CAST(timestamp AS string) AS at").first() or ("",)
    spark.sql(f"RESTORE TABLE delta.`{table}` TO TIMESTAMP AS OF '{time}'")


# Spark takes ten times as long for it, so that it restores in the first test alone.
def restore_with_delta_rs(spark: SparkSession, table: Path, version: int) -> None:  # noqa: ARG001 - as the others
    DeltaTable(str(table)).restore(version)


def batch(spark: SparkSession, number: int) -> DataFrame:
    return spark.range(number, number + 1).selectExpr("id")


def open_writer(
    spark: SparkSession, table: Path, way: str = "append", query_id: str = "one-checkpoint"
) -> DeltaWriter:
    """A start of the query, or with another id of another one."""
    mode, settings = WAYS[way]
    sink = DeltaSink.model_validate({"path": str(table), **settings})
    writer = DeltaWriter(sink, SinkIdentity("shop", "orders", query_id, "delta:o", mode))
    writer.note = lambda number: BatchMetadata((f'{{"end": {number}}}',), number)
    writer.open(spark, batch(spark, 0).schema)
    return writer


def write(spark: SparkSession, table: Path, *numbers: int, way: str = "append") -> list[bool]:
    """Write these batches in one start of the query; whether each was skipped."""
    writer = open_writer(spark, table, way)
    return [writer.write(batch(spark, number), number).is_skipped for number in numbers]


def ids(table: Path) -> list[int]:
    return sorted(id_ for (id_,) in read_rows(table, "id"))


def last_batch(spark: SparkSession, table: Path) -> tuple[int, BatchMetadata] | None:
    """The last batch in the ledger, as a start reads it before it claims anything."""
    sink = DeltaSink.model_validate({"path": str(table)})
    identity = SinkIdentity("shop", "orders", "one-checkpoint", "delta:o", OutputMode.APPEND)
    entry = DeltaWriter(sink, identity).newest(spark)
    return None if entry is None else (entry.batch, entry.note)


# To Delta a time is the version of that time.
@pytest.mark.parametrize(
    "restore",
    [restore_to_version, pytest.param(restore_to_time, marks=pytest.mark.whole), restore_with_delta_rs],
)
def test_the_last_batch_of_a_restored_table_is_the_one_that_its_rows_are_of(
    restore: Callable[[SparkSession, Path, int], None], spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    write(spark, table, 0, 1, 2, 3)

    restore(spark, table, 1)

    assert last_batch(spark, table) == (1, BatchMetadata(('{"end": 1}',), 1))
    assert write(spark, table, 2) == [False]
    assert ids(table) == [0, 1, 2]
    # The log has the number of the older batch now, and that of the one after it.
    assert last_batch(spark, table) == (2, BatchMetadata(('{"end": 2}',), 2))
    assert write(spark, table, 2, 3) == [True, False]
    assert ids(table) == [0, 1, 2, 3]


@pytest.mark.parametrize("way", WAYS)
def test_batches_that_a_restored_table_lacks_are_written_in_each_mode(
    way: str, spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    write(spark, table, 0, 1, 2, way=way)
    restore_with_delta_rs(spark, table, 0)

    assert write(spark, table, 1, 2, way=way) == [False, False]

    assert ids(table) == ([2] if way == "complete" else [0, 1, 2])


def test_a_table_that_is_restored_to_a_version_before_the_first_batch_has_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    batch(spark, 100).write.format("delta").save(str(table))
    write(spark, table, 0, 1)

    restore_with_delta_rs(spark, table, 0)

    assert last_batch(spark, table) is None
    assert write(spark, table, 0) == [False]
    assert ids(table) == [0, 100]


def test_a_restore_that_is_itself_taken_back_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    write(spark, table, 0, 1, 2)
    restore_with_delta_rs(spark, table, 0)
    restore_with_delta_rs(spark, table, 2)

    assert last_batch(spark, table) == (2, BatchMetadata(('{"end": 2}',), 2))

    assert write(spark, table, 2) == [True]
    assert ids(table) == [0, 1, 2]


def test_a_restore_takes_back_only_the_batches_of_queries_that_wrote_since(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    write(spark, table, 0, 1)
    other = open_writer(spark, table, query_id="another-checkpoint")
    other.write(batch(spark, 50), 7)

    restore_with_delta_rs(spark, table, 1)

    assert write(spark, table, 1) == [True]
    assert not open_writer(spark, table, query_id="another-checkpoint").write(batch(spark, 50), 7).is_skipped
    assert ids(table) == [0, 1, 50]


def test_a_run_names_the_batches_that_a_restored_table_lacks_and_a_backfill_writes_them(
    project: Project,
) -> None:
    spec = {"queries": {"copy": {"from": "orders", "to": [{"delta": str(project.folder / "out")}]}}}
    options = RunOptions(until_caught_up=True)
    for row in ROWS[:3]:
        project.add_lines(row)
    assert project.run(project.pipeline(**spec), options)
    restore_with_delta_rs(project.spark, project.folder / "out", 0)
    project.add_lines(ROWS[3])

    assert not project.run(project.pipeline(**spec), options)

    (failed,) = project.list_events("query_failed")
    assert "lacks batches 1 to 2 of query 'copy'" in failed.data["reason"]
    report = backfill_batches(project.spark, project.pipeline(**spec), "copy", [1, 2], print)
    assert [outcome.batch for outcome in report.outcomes] == [1, 2]
    assert project.run(project.pipeline(**spec), options)
    assert [row[0] for row in project.rows("out")] == ["a", "b", "c", "d"]


def test_a_batch_that_is_replayed_after_a_restore_is_written_again(project: Project) -> None:
    spec = {"queries": {"copy": {"from": "orders", "to": [{"delta": str(project.folder / "out")}]}}}
    options = RunOptions(until_caught_up=True)
    for row in ROWS[:2]:
        project.add_lines(row)
    assert project.run(project.pipeline(**spec), options)
    # The run was killed after its last batch was in the table, and before Spark's commit.
    project.forget_last_commit("copy")
    restore_with_delta_rs(project.spark, project.folder / "out", 0)

    assert project.run(project.pipeline(**spec), options)

    assert [row[0] for row in project.rows("out")] == ["a", "b"]
