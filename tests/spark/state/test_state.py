"""The state of a query in the words of the query."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from commands import Done, call, shared_spark
from millstream.checkpoint import metadata
from millstream.dashboard.http import data_preview
from millstream.dashboard.http.data_preview import DataPreviews
from millstream.engine.run import RunOptions
from millstream.state.read_state import REMOVED, measure_stores, read_changes, read_store
from millstream.state.state_sample import sample_query
from millstream.state.stores import list_stores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark.conftest import Project

SUMS = (
    "SELECT window.start AS since, id, sum(amount) AS s, avg(amount) AS a FROM orders "
    "GROUP BY window(at, '10 minutes'), id"
)


def order(key: str, amount: int, minute: int) -> dict[str, Any]:
    return {"id": key, "amount": amount, "at": f"2026-01-01 12:{minute:02}:00"}


pytestmark = pytest.mark.usefixtures("small_batches")


def run_two_batches(project: Project) -> None:
    """Two batches of a query with state."""
    sink = {"delta": {"path": str(project.folder / "sums"), "merge_on": ["since", "id"]}}
    made = project.pipeline(
        views={"sums": {"sql": SUMS}}, queries={"sums": {"output_mode": "update", "to": sink}}
    )
    project.add_lines(order("a", 1, 1), order("b", 5, 2))
    project.add_lines(order("a", 2, 3), order("c", 7, 14))
    assert project.run(made, RunOptions(until_caught_up=True))


@pytest.fixture
def summed(prepared: Callable[..., Project]) -> Project:
    """A project whose query has run two batches."""
    return prepared("sums in two batches", run_two_batches)


@pytest.fixture
def folder(summed: Project) -> Path:
    """The checkpoint of that query."""
    return summed.folder / ".millstream" / "checkpoints" / "sums"


def test_keys_and_values_have_the_names_of_the_query(spark: SparkSession, folder: Path) -> None:
    (store,) = list_stores(spark, folder, metadata.read(folder))

    rows = [row.asDict() for row in read_store(spark, folder, store).collect()]

    assert store.label == "aggregation"
    (first,) = [row for row in rows if row["id"] == "a"]
    assert (first["sum(orders.amount)"], first["avg(orders.amount) 1"], first["avg(orders.amount) 2"]) == (
        3,
        3,
        2,
    )
    assert str(first[REMOVED]) == "2026-01-01 12:10:00"
    assert sorted(row["id"] for row in rows) == ["a", "b", "c"]


def test_the_page_shows_the_state_of_a_query(
    summed: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = summed.pipeline(
        views={"sums": {"sql": SUMS}}, queries={"sums": {"to": {"delta": {"path": "unused"}}}}
    )
    assert made.checkpoint_folder("sums") == folder
    monkeypatch.setattr(data_preview, "PATIENCE", 120.0)
    previews = DataPreviews(made, sample_query)

    answer = previews.state("sums", 3)
    previews.close()

    assert answer is not None
    (store,) = answer["stores"]
    assert (answer["note"], store["state"], store["batch"]) == ("", "aggregation", 2)
    assert (sum(store["partitions"]), store["growth"], store["batches"]) == (3, 1, 2)
    rows = [dict(zip(store["columns"], row, strict=True)) for row in store["rows"]]
    assert {(row["id"], row["sum(orders.amount)"], row[REMOVED]) for row in rows} == {
        ("a", 3, "2026-01-01T12:10:00.000Z"),
        ("b", 5, "2026-01-01T12:10:00.000Z"),
        ("c", 7, "2026-01-01T12:20:00.000Z"),
    }
    assert json.loads(json.dumps(answer)) == answer


def test_the_state_of_an_earlier_batch_and_its_growth(spark: SparkSession, folder: Path) -> None:
    (store,) = list_stores(spark, folder, metadata.read(folder))

    before = read_store(spark, folder, store, 0)
    sizes = measure_stores(spark, folder, store, batches=100)

    assert before.count() == 2
    assert sum(size["keys"] for size in sizes) == 3
    assert sum(size["growth"] for size in sizes) == 1


def test_a_difference_names_the_changed_keys(spark: SparkSession, folder: Path) -> None:
    (store,) = list_stores(spark, folder, metadata.read(folder))

    changes = read_changes(spark, folder, store, 1, 1).collect()

    assert sorted((row["batch_id"], row["change_type"], row["id"]) for row in changes) == [
        (1, "update", "a"),
        (1, "update", "c"),
    ]


def test_a_query_without_state_has_no_stores(spark: SparkSession, tmp_path: Path) -> None:
    assert list_stores(spark, tmp_path, None) == []


EXPORTED = """name: shop
sources: {orders: {json: in, schema: {id: string, amount: int, at: timestamp}}}
queries: {sums: {from: orders, to: [{console: {}}]}}
"""


def exported(spark: SparkSession, project: Project, target: str) -> Done:
    """What `state export` of the query does."""
    (project.folder / "pipeline.yml").write_text(EXPORTED)
    with shared_spark(spark):
        return call(project.folder, "state", "export", "sums", target, env={})


def test_the_state_is_exported_to_a_folder_for_each_operator(spark: SparkSession, summed: Project) -> None:
    done = exported(spark, summed, "out/state")

    assert (done.returncode, done.stdout) == (0, "aggregation: out/state/0\n"), done.both
    assert spark.read.parquet(str(summed.folder / "out/state/0")).count() == 3


def test_a_file_is_no_folder_for_the_state(spark: SparkSession, summed: Project) -> None:
    (summed.folder / "notes.txt").write_text("")

    done = exported(spark, summed, "notes.txt")

    assert done.returncode == 2, done.both
    assert "notes.txt is no folder: File exists" in done.stderr


def test_an_export_that_spark_cannot_write_is_no_defect(spark: SparkSession, summed: Project) -> None:
    (summed.folder / "out").mkdir()
    # No process can create a folder there.
    (summed.folder / "out/0").symlink_to("/proc/none")

    done = exported(spark, summed, "out")

    assert done.returncode == 4, done.both
    assert "the state cannot be exported to out/0: java.io." in done.stderr
    assert "name a folder that this user may write to" in done.stderr


def test_an_export_of_a_damaged_state_is_an_error_of_the_checkpoint(
    spark: SparkSession, summed: Project, folder: Path
) -> None:
    for file in (folder / "state").rglob("*.delta"):
        file.unlink()

    done = exported(spark, summed, "out")

    assert done.returncode == 3, done.both
    assert "may write to" not in done.stderr
    assert not (summed.folder / "out/0").exists()
