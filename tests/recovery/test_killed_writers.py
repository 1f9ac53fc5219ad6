"""A run killed around its commit, and the start after it: each row is there once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from conformance.targets import IN_SANDBOX, sandboxed
from millstream.connectors import registry
from millstream.connectors.failpoints import VARIABLE
from millstream.spec.output_mode import OutputMode
from recovery import dying
from recovery.dying import ROWS, batch, writer_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

# On a machine that does much else a run of three batches may take minutes.
pytestmark = pytest.mark.timeout(500)

LAST = 2
ALL = list(range(ROWS * (LAST + 1)))


def killed(settings: tuple[str, dict[str, Any]], mode: str, point: str, folder: Path) -> None:
    """Let a run die at that point of its last batch."""
    command = [
        sys.executable,
        dying.__file__,
        json.dumps(settings),
        mode,
        point,
        str(LAST),
        str(folder / "spark.log"),
    ]
    armed = {VARIABLE: f"{point}=kill@{LAST + 1}"} if "." in point else {}
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **armed}
    )
    assert result.returncode == -signal.SIGKILL, result.stderr


def started_again(
    settings: tuple[str, dict[str, Any]], mode: str, spark: SparkSession, *, held: bool
) -> None:
    """The next start: Spark hands the unfinished batch over once more."""
    kind, fields = settings
    writer = writer_of(registry.sinks()[kind].model_validate(fields), mode)
    try:
        writer.open(spark, batch(spark, 0).schema)
        assert writer.has_batch(LAST) is held
        assert writer.write(batch(spark, LAST), LAST).is_skipped is held
    finally:
        writer.close()


@pytest.mark.sweep("point", "mode")
@pytest.mark.parametrize(("point", "held"), [("before_commit", False), ("after_commit", True)])
@pytest.mark.parametrize(("mode", "key"), [("append", ()), ("update", ("id",))])
def test_postgres_holds_each_row_once(
    mode: str,
    key: tuple[str, ...],
    point: str,
    held: bool,
    stack: Endpoints,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    table = f"killed_{mode}_{point}"
    settings = ("postgres", {"url": stack.postgres, "table": table, "merge_on": key, "ledger_schema": table})

    killed(settings, mode, point, tmp_path)
    started_again(settings, mode, spark, held=held)

    with psycopg.connect(stack.postgres) as connection:
        rows = connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()
    assert [row[0] for row in rows] == ALL


@pytest.mark.sweep("committed", "mode")
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(("mode", "key"), [("append", ()), ("update", ("id",))])
def test_delta_holds_each_row_once(
    mode: str, key: tuple[str, ...], committed: bool, spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    settings = ("delta", {"path": str(table), "merge_on": key})

    killed(settings, mode, "after_commit", tmp_path)
    if not committed:
        # Data files without an entry in the log: what a run leaves that dies before its commit.
        max((table / "_delta_log").glob("*.json")).unlink()
        for stale in (table / "_delta_log").glob("*.crc"):
            stale.unlink()
    started_again(settings, mode, spark, held=committed)

    rows = spark.read.format("delta").load(str(table)).orderBy("id").collect()
    assert [row.id for row in rows] == ALL


@pytest.mark.parametrize("held", [False, True])
def test_a_delta_table_of_changes_comes_to_the_same_rows(
    held: bool, spark: SparkSession, tmp_path: Path
) -> None:
    """Killed with the batch's deletions kept and its rows not committed, or with both."""
    table = tmp_path / "table"
    cdc = {"keys": "text", "sequence_by": "id", "apply_as_deletes": "id % 10 = 0"}
    settings = ("delta", {"path": str(table), "cdc": cdc})

    killed(settings, "append", "delta.committed" if held else "delta.before", tmp_path)
    started_again(settings, "append", spark, held=held)

    rows = spark.read.format("delta").load(str(table)).orderBy("id").collect()
    assert [row.id for row in rows] == [number for number in ALL if number % 10]


@pytest.mark.parametrize(
    ("point", "held"), [("files.staged", False), ("files.committed", True), ("files.published", True)]
)
def test_folders_of_batches_hold_each_row_once(
    point: str, held: bool, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    settings = ("parquet", {"path": str(folder), "layout": "by_batch"})

    killed(settings, "update", point, tmp_path)
    text = {row.id for row in spark.read.parquet(str(folder)).collect()}
    started_again(settings, "update", spark, held=held)

    assert text == set(ALL if held else ALL[: ROWS * LAST])
    rows = spark.read.parquet(str(folder)).orderBy("id").collect()
    assert [row.id for row in rows] == ALL


@pytest.mark.sweep("point")
@pytest.mark.parametrize(
    ("kind", "point"),
    [(kind, point) for kind in sorted(IN_SANDBOX) for point in registry.sinks()[kind].system.failpoints],
)
def test_any_other_kind_holds_each_row_once(
    kind: str, point: str, spark: SparkSession, tmp_path: Path
) -> None:
    sink = sandboxed(kind, tmp_path)
    settings = (kind, sink.model_dump(mode="json"))

    killed(settings, "append", point, tmp_path)
    started_again(settings, "append", spark, held=point.endswith(".committed"))

    rows = sink.read_all(spark, batch(spark, 0).schema, OutputMode.APPEND)
    assert rows is not None
    assert sorted(row.id for row in rows.collect()) == ALL
