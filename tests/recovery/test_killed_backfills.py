"""A backfill killed around its commit, and the same one again: each row is there once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import psycopg
import pytest

from millstream.connectors.failpoints import VARIABLE
from spark.backfill.conftest import Shop, order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.state import Endpoints

SPEC = """
name: shop
spark: {{spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g, spark.master: "local[2]"}}
sources:
  orders:
    json: in
    schema: {{id: string, amount: int, at: timestamp}}
    watermark: {{event_time: at, delay_threshold: 10 minutes}}
queries:
  orders: {{to: {{{sink}}}}}
"""
IDS = list("abcd")


@pytest.mark.parametrize(
    "point",
    [
        "delta.before",
        "delta.committed",
        "files.staged",
        "files.committed",
        "postgres.open",
        "postgres.committed",
    ],
)
@pytest.mark.timeout(300)
def test_a_backfill_that_was_killed_is_finished_by_the_next(
    point: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    shop = Shop(tmp_path, spark)
    shop.put(*(order(id, f"12:0{at}:00") for at, id in enumerate(IDS)))
    table = "killed_" + point.replace(".", "_")
    sink = {"delta": "delta: table", "files": "parquet: table"}.get(point.partition(".")[0])
    if sink is None:
        stack: Endpoints = request.getfixturevalue("stack")
        sink = f'postgres: {{url: "{stack.postgres}", table: {table}, ledger_schema: {table}}}'
    shop.spec = SPEC.format(sink=sink)
    (tmp_path / "pipeline.yml").write_text(shop.spec)

    done = subprocess.run(
        [sys.executable, "-m", "millstream", "backfill", "-f", str(tmp_path / "pipeline.yml")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, VARIABLE: f"{point}=kill@1"},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    report = shop.backfill()

    assert shop.compare("orders").fine
    if sink.startswith("postgres"):
        with psycopg.connect(request.getfixturevalue("stack").postgres) as connection:
            held = [row[0] for row in connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]
    else:
        held = [row[0] for row in shop.rows("table", "delta" if "delta" in sink else "parquet")]
    assert held == IDS
    # What was committed before the kill is not written again.
    assert report.outcomes[0].added == (0 if "committed" in point else len(IDS))
