"""Checkpoints, tables, files and dead letters on HDFS: each row once after a driver is killed or is suspended."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from acceptance.project import Project
from cluster.interruptions import (
    MANY_FILES,
    POINTS,
    SLOWLY,
    assert_taken_over,
    kill_at_points,
    read_files,
    refuse_a_second_driver,
    resume,
    run_through_an_outage,
    run_with_kills_of_a_worker_and_the_driver,
    suspend_at_points,
)
from cluster.orders import put_checkpoints_in, put_on_cluster, send_orders
from cluster.remote_project import FEW_FILES, FILES, ROWS, write_input, write_project
from cluster.test_cluster import ORDERS as SHOP_ORDERS
from cluster.test_cluster import assert_all_sinks_have
from millstream.checkpoint import lock
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.remote.lease import Lease
from millstream.checkpoint.remote.path import RemotePath
from millstream.devstack.supervisor.state import NAME_NODE
from millstream.engine.delivery.batch_spool import BatchSpool
from millstream.engine.recovery.checkpoint_check import check_checkpoints
from millstream.pipeline.spec_file import load_spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints
    from millstream.pipeline.model import Pipeline


@pytest.fixture
def root(hdfs: str, tmp_path: Path) -> str:
    """A folder of its own on HDFS."""
    return f"{hdfs}/{tmp_path.name}"


@pytest.fixture
def project(stack: Endpoints, root: str, tmp_path: Path) -> Iterator[Project]:
    write_project(tmp_path, root, {}, defaults={"checkpoints": f"{root}/checkpoints"})
    project = Project(tmp_path, stack.kafka, stack.postgres, "")
    yield project
    project.close()


def load(folder: Path) -> Pipeline:
    pipeline = load_spec(folder / "pipeline.yml", {}, ()).pipeline
    assert pipeline is not None
    return pipeline


def assert_each_row_is_there_once(spark: SparkSession, root: str, input_files: int = FILES) -> None:
    everything = Counter(range(input_files * ROWS))
    files = spark.read.parquet(f"{root}/files").select("id").toArrow()
    table = spark.read.format("delta").load(f"{root}/table").select("id").toArrow()
    totals = spark.read.format("delta").load(f"{root}/totals").toArrow().to_pylist()
    stored = spark.read.format("delta").load(f"{root}/checkpoints/_dead_letters").toArrow().to_pylist()

    assert Counter(files["id"].to_pylist()) == everything
    assert Counter(table["id"].to_pylist()) == everything
    assert {row["user"]: row["orders"] for row in totals} == Counter(
        f"u{n % 7}" for n in range(input_files * ROWS)
    )
    assert Counter(row["query"] for row in stored) == {"orders": input_files, "totals": input_files}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "points",
    [
        ["batch.delivered"],
        pytest.param(["batch.begun", "files.staged", "letters.kept"], marks=pytest.mark.whole),
    ],
)
def test_suspended_drivers_end_after_another_has_taken_over_and_nothing_is_lost_or_doubled(
    spark: SparkSession, project: Project, root: str, points: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FEW_FILES if len(points) == 1 else MANY_FILES
    write_input(project.folder, files)
    suspended = suspend_at_points(project, points)
    # A suspended driver renews no lease, so that the shortest time tells it from one that lives.
    monkeypatch.setattr(lock, "Lease", partial(Lease, lapse=1.0))

    project.catch_up_in(spark)
    for run in suspended:
        resume(run)

    for run in suspended:
        assert_taken_over(run)
    assert_each_row_is_there_once(spark, root, files)


@pytest.mark.whole
@pytest.mark.timeout(1800)
@pytest.mark.kills(len(POINTS))
def test_each_row_is_once_after_a_kill_at_each_point_of_a_batch(
    spark: SparkSession, project: Project, root: str
) -> None:
    write_input(project.folder, MANY_FILES)

    kill_at_points(project, POINTS, 1)
    project.catch_up_in(spark, *read_files(MANY_FILES))

    assert_each_row_is_there_once(spark, root, MANY_FILES)


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.kills(1)
def test_each_row_is_once_in_files_tables_and_dead_letters_after_a_kill_on_a_cluster(
    spark: SparkSession, project: Project, cluster: Endpoints, root: str
) -> None:
    put_on_cluster(project.folder, cluster, **{"spark.master": cluster.spark})
    first = project.start("run", "--json", "--no-page", *SLOWLY)
    first.await_event("batch_committed", count=3)
    first.kill()

    project.catch_up()

    assert_each_row_is_there_once(spark, root)


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.kills(2)
def test_a_processor_keeps_its_state_on_hdfs_although_a_worker_and_then_the_driver_are_killed(
    shop: Project, cluster: Endpoints, root: str
) -> None:
    put_checkpoints_in(shop.folder, f"{root}/checkpoints")
    send_orders(shop.kafka, f"{shop.prefix}orders", range(SHOP_ORDERS))

    run_with_kills_of_a_worker_and_the_driver(shop, cluster, PREFIX=shop.prefix, TABLE="on_hdfs")

    assert_all_sinks_have(shop, "on_hdfs", SHOP_ORDERS)
    assert not list(shop.folder.rglob("offsets"))


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.kills(1)
def test_a_name_node_that_is_away_for_half_a_minute_costs_no_row(
    spark: SparkSession, project: Project, stack: Endpoints, root: str
) -> None:
    run_through_an_outage(project, stack.folder, NAME_NODE, FILES)
    assert_each_row_is_there_once(spark, root)


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_a_second_driver_is_refused_while_the_first_renews_its_lease(project: Project) -> None:
    refuse_a_second_driver(project)


@pytest.mark.usefixtures("spark")
def test_torn_files_of_a_checkpoint_on_hdfs_are_found_and_moved_aside(project: Project) -> None:
    pipeline = load(project.folder)
    folder = pipeline.checkpoint_folder("orders")
    assert isinstance(folder, RemotePath)
    with CheckpointLock(folder, "remote.orders"):
        Checkpoint(folder).ensure_id()
        (folder / "offsets").mkdir()
        (folder / "offsets" / "0").write_text("v1\n{")
        assert [damage.file for damage in find_damage(folder)] == [folder / "offsets" / "0"]

        check_checkpoints(pipeline, ["orders"], repair=True)

    assert not (folder / "offsets" / "0").exists()
    assert (folder / "_millstream" / "aside" / "offsets.0.1").read_text() == "v1\n{"
    assert find_damage(folder) == []


def test_a_batch_is_spooled_on_hdfs_once_and_forgotten(spark: SparkSession, project: Project) -> None:
    pipeline = load(project.folder)
    folder = pipeline.checkpoint_folder("orders")
    spool = BatchSpool.of(pipeline, "orders", "id", "delta:table")
    frame = spark.range(3).coalesce(1)
    with CheckpointLock(folder, "remote.orders", [folder.parent / "_set_aside" / "orders"]):
        spool.spool(frame, 7, "away")
        spool.spool(spark.range(5), 7, "away again")

        (batch,) = spool.batches()
        rows = batch.rows(spark).count()
        batch.forget()

    assert (batch.query, batch.query_id, batch.sink, batch.batch, rows) == (
        "orders",
        "id",
        "delta:table",
        7,
        3,
    )
    assert not spool.has_batches()
