"""Tables, files and dead letters on HDFS, written by executors: each row once after the driver is killed."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from acceptance.project import Project
from cluster.hdfs import run_hdfs
from cluster.orders import put_on_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

FILES, ROWS = 5, 100
SPEC = """
name: remote
spark: {spark.driver.memory: 1g, spark.sql.shuffle.partitions: 2}
dead_letters: {delta: "HDFS/letters"}
sources:
  orders:
    json: {path: input, max_files_per_trigger: 1}
    schema: {id: bigint, user: string}
    on_malformed: dead_letter
views:
  totals: SELECT user, count(*) AS orders FROM orders GROUP BY user
queries:
  orders:
    output_mode: append
    to: [{parquet: {path: "HDFS/files"}}, {delta: {path: "HDFS/table"}}]
  totals:
    output_mode: update
    to: {delta: {path: "HDFS/totals", merge_on: [user]}}
"""


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_hdfs(tmp_path_factory.mktemp("hdfs")) as address:
        yield address


@pytest.fixture
def project(cluster: Endpoints, hdfs: str, tmp_path: Path) -> Iterator[Project]:
    (tmp_path / "pipeline.yml").write_text(SPEC.replace("HDFS", f"{hdfs}/{tmp_path.name}"), encoding="utf-8")
    put_on_cluster(tmp_path, cluster, **{"spark.master": cluster.spark})
    (tmp_path / "input").mkdir()
    for file in range(FILES):
        orders = (
            {"id": number, "user": f"u{number % 7}"} for number in range(file * ROWS, (file + 1) * ROWS)
        )
        lines = [*map(json.dumps, orders), f"torn {file}"]
        (tmp_path / "input" / f"{file}.json").write_text("\n".join(lines), encoding="utf-8")
    project = Project(tmp_path, cluster.kafka, cluster.postgres, "")
    yield project
    project.close()


@pytest.mark.whole
@pytest.mark.timeout(600)
def test_each_row_is_once_in_files_tables_and_dead_letters_after_a_kill(
    spark: SparkSession, project: Project, hdfs: str
) -> None:
    first = project.start("run", "--json", "--no-page", "--set", "defaults.trigger=1 second")
    first.await_event("batch_committed", count=3)
    first.kill()

    project.catch_up()

    root = f"{hdfs}/{project.folder.name}"
    everything = Counter(range(FILES * ROWS))
    files = spark.read.parquet(f"{root}/files").select("id").toArrow()
    table = spark.read.format("delta").load(f"{root}/table").select("id").toArrow()
    totals = spark.read.format("delta").load(f"{root}/totals").toArrow().to_pylist()
    letters = spark.read.format("delta").load(f"{root}/letters").where("query = 'orders'").count()
    assert Counter(files["id"].to_pylist()) == everything
    assert Counter(table["id"].to_pylist()) == everything
    assert {row["user"]: row["orders"] for row in totals} == Counter(f"u{n % 7}" for n in range(FILES * ROWS))
    assert letters == FILES
