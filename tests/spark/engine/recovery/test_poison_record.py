"""A batch that fails each time is named with what it reads; one that died by accident is tried again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.api.values.offsets import OffsetRange
from millstream.engine.recovery.poison_record import SHOWN, _Search

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline
    from spark.conftest import Project

A = {"id": "a", "amount": 3, "at": "2026-01-01T12:01:00Z"}
B = {"id": "b", "amount": 0, "at": "2026-01-01T12:02:00Z"}

# A Python worker that is killed as often as the file says, at the row whose amount is 0.
DYING = """
import os, signal
from pathlib import Path
from pyspark.sql import functions as F

LEFT = Path({left!r})

def dying(orders):
    @F.udf("int")
    def risky(amount):
        left = int(LEFT.read_text())
        if amount == 0 and left:
            LEFT.write_text(str(left - 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return amount
    return orders.select("id", risky("amount").alias("amount"))
"""


def copying(project: Project, view: dict[str, str]) -> Pipeline:
    return project.pipeline(
        views={"risky": view}, queries={"risky": {"to": [{"delta": str(project.folder / "table")}]}}
    )


def dying(project: Project, times: int) -> Pipeline:
    left = project.folder / "left"
    left.write_text(str(times))
    (project.folder / "transforms.py").write_text(DYING.format(left=str(left)))
    return copying(project, {"python": "transforms:dying"})


def test_a_batch_that_cannot_be_computed_is_named_with_its_files(project: Project) -> None:
    pipeline = copying(project, {"sql": "SELECT id, 100 / amount AS share FROM orders"})
    project.add_lines(A)
    project.run(pipeline)
    project.add_lines(B)

    fine = project.run(pipeline)

    (failed,) = project.list_events("query_failed")
    assert not fine
    assert "DIVIDE_BY_ZERO" in failed.data["reason"]
    assert failed.data["batch"] == 1
    assert failed.data["reads"] == [f"file file://{project.folder}/in/002.json"]
    assert "start again" in failed.data["fix"]
    assert project.list_events("retry") == []


def test_a_python_worker_that_is_killed_once_costs_a_retry_and_no_row(project: Project) -> None:
    project.add_lines(A)
    project.add_lines(B)

    fine = project.run(dying(project, 1))

    assert fine
    assert len(project.list_events("retry")) == 1
    assert project.rows("table") == [("a", 3), ("b", 0)]


def test_a_batch_that_kills_its_worker_each_time_is_poisoned(project: Project) -> None:
    pipeline = dying(project, 99)
    project.add_lines(A)
    project.run(pipeline)
    project.add_lines(B)

    fine = project.run(pipeline)

    (failed,) = project.list_events("query_failed")
    assert not fine
    assert len(project.list_events("retry")) == 2
    assert failed.data["cause"] == "crash"
    assert (failed.data["batch"], failed.data["reads"]) == (1, [f"file file://{project.folder}/in/002.json"])
    assert project.rows("table") == [("a", 3)]


@pytest.mark.parametrize(("value", "shown"), [(b"x" * SHOWN, ""), (b"x" * SHOWN + b"y", " …"), (None, None)])
def test_a_value_that_is_cut_off_says_so(value: bytes | None, shown: str | None, spark: SparkSession) -> None:
    record = spark.createDataFrame([(value,)], "value BINARY")
    source = SimpleNamespace(has_payload=True, read_range=lambda *_: record, halves=lambda _: None)
    entry: Any = SimpleNamespace(source=source, ddl=None)
    pipeline: Any = None

    actual = _Search(spark, pipeline, "copy", "orders", ())._record_value(entry, OffsetRange(None, "{}"))

    assert actual == ("null" if value is None else f"'{'x' * SHOWN}'{shown}")
