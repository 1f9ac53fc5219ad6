"""A backfill killed around its commit, and the same one again: each row is there once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from commands import Done, call, shared_spark
from millstream.connectors.failpoints import VARIABLE
from spark.backfill.conftest import Shop, order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

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


def sink_and_moment(point: str) -> list[object]:
    """Each sink, and before and after a commit; each point itself is met by other tests of this folder."""
    sink, _, moment = point.partition(".")
    return [sink, moment == "committed"]


@pytest.mark.sweep(by=sink_and_moment)
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
    shop.add_lines(*(order(id, f"12:0{at}:00") for at, id in enumerate(IDS)))
    table = "killed_" + point.replace(".", "_")
    sink = {"delta": "delta: table", "files": "parquet: table"}.get(point.partition(".")[0])
    if sink is None:
        stack: Endpoints = request.getfixturevalue("stack")
        sink = f'postgres: {{url: "{stack.postgres}", table: {table}, ledger_schema: {table}}}'
    shop.spec = SPEC.format(sink=sink)
    (tmp_path / "pipeline.yml").write_text(shop.spec)
    shop.stream()
    if sink.startswith("postgres"):
        with psycopg.connect(request.getfixturevalue("stack").postgres) as connection:
            connection.execute(f"TRUNCATE {table}")
    elif sink.startswith("delta"):
        spark.sql(f"DELETE FROM delta.`{tmp_path / 'table'}`")
    else:
        shutil.rmtree(tmp_path / "table")

    result = subprocess.run(
        [sys.executable, "-m", "millstream", "backfill", "-f", str(tmp_path / "pipeline.yml")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, VARIABLE: f"{point}=kill@1"},
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    report = shop.backfill()

    assert shop.compare("orders").is_equal
    if sink.startswith("postgres"):
        with psycopg.connect(request.getfixturevalue("stack").postgres) as connection:
            stored = [row[0] for row in connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]
    else:
        stored = [row[0] for row in shop.rows("table", "delta" if "delta" in sink else "parquet")]
    assert stored == IDS
    # What was committed before the kill is not written again.
    assert report.outcomes[0].added == (0 if "committed" in point else len(IDS))


@pytest.mark.timeout(300)
def test_a_backfill_of_batches_that_was_killed_leaves_each_of_them_once(
    spark: SparkSession, stack: Endpoints, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, spark)
    name = "killed_batches"
    sink = f'postgres: {{url: "{stack.postgres}", table: {name}.orders, ledger_schema: {name}}}'
    shop.spec = SPEC.format(sink=sink)
    (tmp_path / "pipeline.yml").write_text(shop.spec)
    for at, id in enumerate("abcd"):
        shop.add_lines(order(id, f"12:0{at}:00"))
        shop.stream("orders")

    def ask(text: str) -> list[Any]:
        with psycopg.connect(stack.postgres, autocommit=True) as connection:
            cursor = connection.execute(text)
            return [row[0] for row in cursor.fetchall()] if cursor.description else []

    # What a dump from before batch 1 gives back.
    ask(f"DELETE FROM {name}.orders WHERE id <> 'a'")
    ask(f"DELETE FROM {name}.ledger WHERE batch_id > 0")

    def millstream(*words: str, **armed: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "millstream", *words, "-f", str(tmp_path / "pipeline.yml")],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            env={**os.environ, **armed},
        )

    def here(*words: str) -> Done:
        with shared_spark(spark):
            return call(tmp_path, *words, env=os.environ)

    refusal = here("run", "--until-caught-up", "--no-page")
    assert refusal.returncode == 3
    assert "lacks batches 1 to 3 of query 'orders'" in refusal.stderr
    assert "'millstream backfill orders --batches 1-3'" in refusal.stderr
    fill = ("backfill", "orders", "--batches", "1-3")
    assert millstream(*fill, **{VARIABLE: "postgres.committed=kill@2"}).returncode == -signal.SIGKILL
    assert ask(f"SELECT batch_id FROM {name}.ledger ORDER BY 1") == [0, 1, 2]
    result = here(*fill)
    assert result.returncode == 0, result.stderr

    shop.add_lines(order("e", "12:05:00"))
    shop.stream("orders")
    assert ask(f"SELECT id FROM {name}.orders ORDER BY 1") == list("abcde")
    assert ask(f"SELECT batch_id FROM {name}.ledger ORDER BY 1") == [0, 1, 2, 3, 4]

    # Its checkpoint goes with a query that is renamed, and the ledger knows it again.
    checkpoints = tmp_path / ".millstream" / "checkpoints"
    (checkpoints / "orders").rename(checkpoints / "purchases")
    shop.spec = shop.spec.replace("orders: {to:", "purchases: {from: orders, to:")
    shop.add_lines(order("f", "12:06:00"))
    shop.stream("purchases")
    assert ask(f"SELECT id FROM {name}.orders ORDER BY 1") == list("abcdef")
