"""An executor that is lost with rows that it has processed: each dead letter of the batch is stored once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
import yaml
from deltalake import DeltaTable

from acceptance.project import Project
from cluster.orders import put_on_cluster
from cluster.remote_project import ROWS, write_input

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.devstack.supervisor.state import Endpoints

# The executor is the parent of the process that forks the workers of Python.
FUNCTIONS = """
import os
import signal
from pathlib import Path

from pyspark.sql import functions as F


@F.udf("bigint")
def kill_executor_once(number):
    killed = Path("FOLDER/killed")
    if not killed.exists():
        killed.touch()
        status = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
        os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
    return number


def after_a_shuffle(orders):
    return orders.repartition(2, "user").select(kill_executor_once("id").alias("id"), "user")


def use_again(frame, batch):
    frame.select(kill_executor_once("id")).collect()
"""
SHUFFLED = {
    "views": {"shuffled": {"python": "functions:after_a_shuffle"}},
    "to": [{"parquet": {"path": "files"}}],
}
CACHED = {"views": {}, "to": [{"parquet": {"path": "files"}}, {"foreach_batch": "functions:use_again"}]}


@pytest.fixture
def project(stack: Endpoints, tmp_path: Path) -> Iterator[Project]:
    write_input(tmp_path, 1)
    (tmp_path / "functions.py").write_text(FUNCTIONS.replace("FOLDER", str(tmp_path)), encoding="utf-8")
    project = Project(tmp_path, stack.kafka, stack.postgres, "")
    yield project
    project.close()


@pytest.mark.whole
@pytest.mark.timeout(600)
@pytest.mark.kills(1)
@pytest.mark.parametrize("case", [SHUFFLED, CACHED], ids=["its output of a shuffle", "its cached rows"])
def test_dead_letters_are_stored_once_although_an_executor_is_lost_with(
    case: dict[str, object], project: Project, cluster: Endpoints
) -> None:
    spec = {
        "name": "lost",
        "defaults": {"retry": {"first": "10 ms"}},
        "dead_letters": str(project.folder / "letters"),
        "spark": {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": 2},
        "sources": {
            "orders": {
                "json": {"path": "input"},
                "schema": {"id": "bigint", "user": "string"},
                "on_malformed": "dead_letter",
            }
        },
        "views": case["views"],
        "queries": {"copy": {"from": next(iter(case["views"]), "orders"), "to": case["to"]}},  # type: ignore[call-overload]
    }
    (project.folder / "pipeline.yml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    # With one core there is one executor at a time, so that the lost one has processed all rows.
    put_on_cluster(project.folder, cluster, **{"spark.master": cluster.spark, "spark.cores.max": "1"})

    run = project.catch_up()

    assert (project.folder / "killed").exists()
    files = ds.dataset(str(project.folder / "files"), format="parquet").to_table(columns=["id"])
    letters = DeltaTable(str(project.folder / "letters")).to_pyarrow_table()
    assert Counter(files["id"].to_pylist()) == Counter(range(ROWS))
    assert letters["value"].to_pylist() == [b"torn 0"]
    assert [event["records"] for event in run.list_events("dead_letter")] == [1]
