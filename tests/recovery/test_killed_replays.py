"""Batches wait, the setting is taken off, and processes are killed: nothing is written past, each row comes once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from commands import call, shared_spark
from delta_tables import read_rows
from millstream.connectors.failpoints import VARIABLE
from millstream.diagnostics.failure import CheckpointMismatch
from recovery import same_process

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPEC = """
name: shop
spark: {{spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g, spark.master: "local[2]"}}
sources:
  orders:
    json: {{path: in, max_files_per_trigger: 1}}
    schema: {{id: string, amount: int}}
queries:
  copy: {{from: orders, to: [{{delta: table{0}}}]}}
"""
BEGAN = 1_750_000_000


def write_input(folder: Path, number: int, id: str, amount: int) -> None:
    """One file with one order, read in the order of numbers."""
    file = folder / "in" / f"{number}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"id": id, "amount": amount}))
    os.utime(file, (BEGAN + number, BEGAN + number))


def millstream(folder: Path, *given: str, armed: str = "") -> subprocess.CompletedProcess[str]:
    """A command over the project, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "millstream", *given],
        cwd=folder,
        env={**os.environ, VARIABLE: armed},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.timeout(600)
def test_batches_that_wait_come_once_though_the_setting_was_taken_off_and_their_delivery_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    spec, table = tmp_path / "pipeline.yml", f"delta.`{tmp_path / 'table'}`"
    spec.write_text(SPEC.format(", on_error: dead_letter"))
    spark.createDataFrame([], "id string, amount int").write.format("delta").save(str(tmp_path / "table"))
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT positive CHECK (amount > 0)")
    for number, amount in enumerate((1, 0, 1)):
        write_input(tmp_path, number, "abc"[number], amount)

    # Order b is refused, and c waits behind it.
    same_process.catch_up(spark, tmp_path)

    spec.write_text(SPEC.format(""))
    write_input(tmp_path, 3, "d", 1)
    with pytest.raises(
        CheckpointMismatch, match="2 batches of query 'copy' wait for sink 'delta:table'"
    ) as error:
        same_process.catch_up(spark, tmp_path)
    assert "millstream deadletter replay copy" in error.value.fix

    spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT positive")
    killed = millstream(tmp_path, "deadletter", "replay", "copy", armed="delta.committed=kill@1")
    assert killed.returncode == -signal.SIGKILL
    with shared_spark(spark):
        replayed = call(tmp_path, "deadletter", "replay", "copy", env=os.environ)
    assert replayed.stdout.splitlines() == [
        "copy: batch 1 was in delta:table already",
        "copy: batch 2 delivered to delta:table",
    ]
    same_process.catch_up(spark, tmp_path)

    assert sorted(id_ for (id_,) in read_rows(tmp_path / "table", "id")) == ["a", "b", "c", "d"]
