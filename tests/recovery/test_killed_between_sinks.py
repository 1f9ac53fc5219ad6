"""A run that is killed between two sinks of one name, and goes on from a spec that has them the other way round."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from millstream.connectors.failpoints import VARIABLE
from millstream.engine.events.event_bus import EventBus
from millstream.engine.run import RunOptions, lock_checkpoints, run_pipeline
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.devstack.supervisor.state import Endpoints

pytestmark = pytest.mark.usefixtures("interpreted")

SPEC = """
name: shop
spark: {{spark.master: "local[1]", spark.driver.memory: 1g}}
sources:
  orders: {{json: {{path: in, max_files_per_trigger: 1}}, schema: {{id: string}}, on_malformed: drop}}
queries:
  orders:
    to:
      - postgres: {{url: "{first}", table: orders}}
      - postgres: {{url: "{second}", table: {table}}}
"""


def ask(url: str, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []


def as_an_older_version_named_them(folder: Path, urls: list[str]) -> None:
    """Numbered in the order of the spec, in both ledgers and in the record."""
    file = folder / ".millstream" / "checkpoints" / "orders" / "_millstream" / "record.json"
    record = json.loads(file.read_text())
    for sink, url, name in zip(record["sinks"], urls, ("postgres:orders", "postgres:orders#2"), strict=True):
        key = f"{sink['key'].partition('/')[0]}/{name}"
        for table in ("fence", "ledger"):
            ask(url, f"UPDATE millstream.{table} SET writer = '{key}' WHERE writer = '{sink['key']}'")
        sink["key"] = key
        sink.pop("since", None)
    file.write_text(json.dumps(record))


def test_two_sinks_of_one_name_keep_their_ledgers_when_their_order_changes(
    tmp_path: Path, stack: Endpoints, spark: SparkSession
) -> None:
    urls = []
    for name in ("between_one", "between_two"):
        ask(stack.postgres, f"CREATE DATABASE {name}")
        urls.append(f"{stack.postgres.rpartition('/')[0]}/{name}")
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps({"id": f"row {number}"}))
        os.utime(tmp_path / "in" / f"{number}.json", (1_767_225_600 + number,) * 2)
    (tmp_path / "pipeline.yml").write_text(SPEC.format(first=urls[0], second=urls[1], table="orders"))
    # The third commit is that of batch 1 in the first database; the second one has batch 0 only.
    died = subprocess.run(
        [str(Path(sys.executable).with_name("millstream")), "run", "--until-caught-up", "--no-page"],
        cwd=tmp_path,
        env=os.environ | {VARIABLE: "postgres.committed=kill@3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    as_an_older_version_named_them(tmp_path, urls)
    fence = "SELECT writer, epoch FROM millstream.fence"
    before = [ask(url, fence) for url in urls]

    swapped = SPEC.format(first=urls[1], second=urls[0], table="public.orders")
    pipeline = load_text("pipeline.yml", swapped, tmp_path, {}).pipeline
    assert pipeline is not None
    events = EventBus()
    events.listen(print)
    with ExitStack() as exit_stack:
        exit_stack.callback(events.close)
        lock_checkpoints(pipeline, ["orders"], exit_stack)
        assert run_pipeline(spark, pipeline, RunOptions(until_caught_up=True), events, {})

    for url, fences in zip(urls, before, strict=True):
        assert ask(url, "SELECT id FROM orders ORDER BY id") == [("row 0",), ("row 1",)]
        assert ask(url, fence) == [(writer, epoch + 1) for writer, epoch in fences]
