"""`millstream plan --apply` killed as a process, and the same again: one checkpoint is whole, the rows are right."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from random import Random
from typing import TYPE_CHECKING

import pytest

import sweep
from commands import Done, call, shared_spark
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.corruption import find_damage
from millstream.checkpoint.replacement import finish_replacements
from millstream.connectors.failpoints import VARIABLE
from recovery import dying_commands
from spark.backfill.conftest import Shop, fill_input, order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SPEC = """
name: shop
spark: {spark.sql.shuffle.partitions: 2, spark.driver.memory: 1g, spark.master: "local[2]"}
defaults: {checkpoints: checkpoints}
sources:
  orders:
    json: in
    schema: {id: string, amount: int, at: timestamp}
    watermark: {event_time: at, delay_threshold: 10 minutes}
views:
  sums: |
    SELECT window.start AS since, count(*) AS n, sum(amount) AS amount
    FROM orders GROUP BY window(at, '10 minutes')
queries:
  sums: {output_mode: update, to: {delta: {path: sums, merge_on: [since]}}}
"""
APPLY = ("plan", "--apply", "--yes", "--past", "backfill")
# In a part: with the checkpoint replaced and the rows not, and at one of the others.
POINTS = sweep.covering(
    ["renewal.replaced", "renewal.prepared", "renewal.filled", "delta.committed"],
    lambda point: [point == "renewal.replaced"],
    "apply",
)
HOURS = [("12:00", 4, 18), ("13:00", 1, 7)]
# Ends the process at a change of a file in the folder, counted from 1. Spark's own are not counted.
KILL_AT_CHANGE = """
import os, runpy, signal, sys
folder, number = sys.argv[1], int(sys.argv[2])
changes = 0

def hook(event, args):
    global changes
    is_write = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    is_change = is_write or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
    if is_change and str(args[0]).startswith(folder):
        changes += 1
        if changes == number:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
sys.argv = ["millstream", *sys.argv[3:]]
runpy.run_module("millstream", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def changed(spark: SparkSession, tmp_path: Path) -> Shop:
    """A shop that has run, whose windows are longer in the spec since."""
    return run_and_change(Shop(tmp_path, spark))


@pytest.fixture(scope="module")
def duration(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds that a process takes that is not killed."""
    shop = run_and_change(Shop(tmp_path_factory.mktemp("whole"), spark))
    began = time.monotonic()
    assert run("-m", "millstream", *APPLY, "-f", str(shop.folder)) == 0
    return time.monotonic() - began


def run_and_change(shop: Shop) -> Shop:
    """Run the shop, then make its windows longer in the spec."""
    fill_input(shop)
    shop.spec = SPEC
    shop.stream()
    shop.spec = SPEC.replace("'10 minutes')", "'1 hour')")
    (shop.folder / "pipeline.yml").write_text(shop.spec)
    return shop


def run(*words: str, **armed: str) -> int:
    """The exit code of a process that was given this long to die."""
    command = [sys.executable, *words]
    return subprocess.run(
        command, capture_output=True, timeout=280, check=False, env={**os.environ, **armed}
    ).returncode


def here(shop: Shop, *words: str) -> Done:
    """The same command in the session of the tests."""
    with shared_spark(shop.spark):
        return call(shop.folder, *words, env=os.environ)


def windows(shop: Shop) -> list[tuple[str, int, int]]:
    """The rows of the sink."""
    return [(since.strftime("%H:%M"), n, amount) for since, n, amount in shop.rows("sums")]


def finish(shop: Shop) -> None:
    """Apply again, then run with one more order, and hold the rows against the right ones."""
    checkpoints = shop.folder / "checkpoints"
    finish_replacements(checkpoints)
    assert Checkpoint(checkpoints / "sums").query_id() is not None
    assert find_damage(checkpoints / "sums") == []
    refused = here(shop, "run", "--until-caught-up", "--no-page")
    assert refused.returncode in (0, 3), refused.stderr
    result = here(shop, *APPLY)
    assert result.returncode == 0, result.stdout + result.stderr
    shop.add_lines(order("f", "13:05:00", 1))
    shop.stream("sums")
    assert windows(shop) == [*HOURS[:1], ("13:00", 2, 8)]


@pytest.fixture(scope="module")
def killed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shop]:
    """A changed shop for each point, where it was killed. One process dies for all."""
    shops = {point: run_and_change(Shop(tmp_path_factory.mktemp("killed"), spark)) for point in POINTS}
    cases = [(str(shop.folder), APPLY, point, 1) for point, shop in shops.items()]
    dying_commands.die(cases, tmp_path_factory.mktemp("dying") / "spark.log")
    return shops


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.timeout(600)
def test_killed_at_a_failpoint_it_is_finished_by_the_next(killed: dict[str, Shop], point: str) -> None:
    finish(killed[point])


@pytest.mark.whole
@pytest.mark.parametrize("number", [1, 2, 4, 7, 11, 16, 22, 29, 37])
@pytest.mark.timeout(400)
def test_killed_at_any_change_of_a_file_it_is_finished_by_the_next(changed: Shop, number: int) -> None:
    folder = str(changed.folder / "checkpoints")

    code = run("-c", KILL_AT_CHANGE, folder, str(number), *APPLY, "-f", str(changed.folder))

    assert code in (-signal.SIGKILL, 0)
    finish(changed)


@pytest.mark.whole
@pytest.mark.parametrize("share", [round((n + Random(n).random()) / 8, 2) for n in range(8)])
@pytest.mark.timeout(400)
def test_killed_at_a_random_time_it_is_finished_by_the_next(
    changed: Shop, duration: float, share: float
) -> None:
    """Killed when this share of the time is over that a whole one takes."""
    command = [sys.executable, "-m", "millstream", *APPLY, "-f", str(changed.folder)]

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(duration * share)
        process.kill()

    assert process.returncode in (-signal.SIGKILL, 0)
    finish(changed)


@pytest.mark.whole
@pytest.mark.timeout(400)
def test_a_query_that_is_renamed_before_it_is_finished_keeps_its_former_checkpoint(changed: Shop) -> None:
    code = run("-m", "millstream", *APPLY, "-f", str(changed.folder), **{VARIABLE: "renewal.replaced=kill@1"})
    assert code == -signal.SIGKILL
    changed.spec = changed.spec.replace("  sums: {output_mode", "  totals: {from: sums, output_mode")
    (changed.folder / "pipeline.yml").write_text(changed.spec)

    result = here(changed, *APPLY)

    assert result.returncode == 0, result.stdout + result.stderr
    assert "totals: has the checkpoint" in result.stdout
    assert "totals: the rows in its sinks are replaced" in result.stdout
    changed.add_lines(order("f", "13:05:00", 1))
    changed.stream("totals")
    assert windows(changed) == [*HOURS[:1], ("13:00", 2, 8)]
