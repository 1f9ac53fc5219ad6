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

from millstream.connectors.failpoints import VARIABLE
from recovery.projects.changed_shop import APPLY, HOURS, finish, here, run_and_change, windows
from spark.backfill.conftest import Shop, order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

# At its failpoints it is killed in test_kills_at_failpoints.py.
pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("small_batches")]

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


def run(*words: str, **armed: str) -> int:
    """The exit code of a process that was given this long to die."""
    command = [sys.executable, *words]
    return subprocess.run(
        command, capture_output=True, timeout=280, check=False, env={**os.environ, **armed}
    ).returncode


@pytest.mark.parametrize("number", [1, 2, 4, 7, 11, 16, 22, 29, 37])
@pytest.mark.timeout(400)
def test_killed_at_any_change_of_a_file_it_is_finished_by_the_next(changed: Shop, number: int) -> None:
    folder = str(changed.folder / "checkpoints")

    code = run("-c", KILL_AT_CHANGE, folder, str(number), *APPLY, "-f", str(changed.folder))

    assert code in (-signal.SIGKILL, 0)
    finish(changed)


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
