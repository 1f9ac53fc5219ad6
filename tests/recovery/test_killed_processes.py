"""One process of a run is killed: the others end too, with a sentence where anybody is left to say it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from millstream.checkpoint import lock
from millstream.checkpoint.lock import CheckpointLock
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = """
name: ticks
spark: {spark.master: "local[1]", spark.driver.memory: 1g}
sources:
  ticks: {rate: {rows_per_second: 5}}
queries:
  ticks: {trigger: 1 second, to: {console: {}}}
"""
# Linux kills the JVM with its Python process. On other systems, and if a thread started it, the JVM ends by itself.
WITHOUT_DEATH_SIGNAL = """
from millstream.cli.main import main
from millstream.spark import jvm_launch

jvm_launch.make_parent_death_hook = lambda number: None
raise SystemExit(main(["run", "--json"]))
"""
# The JVM is killed before the run does this.
KILLED_FIRST = """
import {module} as module
from millstream.cli.main import main
from millstream.spark import session
from pyspark import SparkContext

original = module.{name}

def kill_first(*args, **options):
    session.kill_jvm()
    # Each open connection fails once. Only a new one is refused, as that to a server that is down.
    refused = None
    while not isinstance(refused, ConnectionRefusedError):
        try:
            SparkContext._active_spark_context._jvm.System.nanoTime()
        except Exception as error:
            refused = error
    return original(*args, **options)

module.{name} = kill_first
raise SystemExit(main(["run", "--json"]))
"""
# Seconds; an idle machine needs one.
PATIENCE = 120.0


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """`millstream run` in a new session, after its first batch; a test may give another command."""
    (tmp_path / "pipeline.yml").write_text(SPEC)
    millstream = [str(Path(sys.executable).with_name("millstream")), "run", "--json"]
    command = getattr(request, "param", millstream)
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=True
        )
    try:
        assert process.stdout is not None
        assert any('"batch_committed"' in line for line in process.stdout), (tmp_path / "err").read_text()
        yield process
    finally:
        for number in session_of(process):
            # It may have ended since we looked.
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        process.wait(PATIENCE)
        if process.stdout is not None:
            process.stdout.close()


class Process(NamedTuple):
    name: str
    parent: int


def session_of(process: subprocess.Popen[str]) -> dict[int, Process]:
    """The processes that live in the session that a process leads, by number."""
    actual = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            # It ended while we looked.
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        state, parent, _, session = rest.split()[:4]
        if int(session) == process.pid and state != "Z":
            actual[int(folder.name)] = Process(name, int(parent))
    return actual


def jvm_of(process: subprocess.Popen[str]) -> int:
    """The JVM of a run. A process that the JVM is about to start has its name for a moment, and the JVM as parent."""
    java = {number: item for number, item in session_of(process).items() if item.name == "java"}
    (jvm,) = (number for number, item in java.items() if item.parent not in java)
    return jvm


def emptied(process: subprocess.Popen[str]) -> dict[int, Process]:
    """What is left of a session after some patience; nothing when all have ended."""
    until = time.monotonic() + PATIENCE
    while (left := session_of(process)) and time.monotonic() < until:
        threading.Event().wait(0.1)
    return left


def test_a_killed_jvm_ends_the_run_with_one_sentence_and_no_process_is_left(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    jvm = jvm_of(running)

    os.kill(jvm, signal.SIGKILL)
    code = running.wait(PATIENCE)

    text = (tmp_path / "err").read_text()
    assert code == 1, text
    assert "Traceback" not in text
    assert "Spark's JVM was ended by signal 9" in text
    assert text.count("fix:") == 1, text
    assert emptied(running) == {}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param("millstream.checking.spark_analysis", "analyse_pipeline", id="check"),
        pytest.param("millstream.engine.streaming_query", "RunningQuery.start", id="start"),
    ],
)
def test_a_jvm_that_is_killed_before_the_first_batch_ends_the_run_too(
    module: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "pipeline.yml").write_text(SPEC)

    ended = subprocess.run(
        [sys.executable, "-c", KILLED_FIRST.format(module=module, name=name)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert ended.returncode == 1, ended.stderr
    assert "Spark's JVM" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("fix:") == 1, ended.stderr
    assert '"retry"' not in ended.stdout


@pytest.mark.parametrize(
    "running",
    [pytest.param([sys.executable, "-c", WITHOUT_DEATH_SIGNAL], id="no death signal")],
    indirect=True,
)
def test_the_jvm_of_a_killed_driver_is_waited_for_by_the_next_start_and_ends(
    running: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm = jvm_of(running)
    checkpoint = tmp_path / ".millstream" / "checkpoints" / "ticks"
    # Suspended it does not end as fast as it would, as though it were in the middle of a write.
    os.kill(jvm, signal.SIGSTOP)
    running.kill()
    running.wait(PATIENCE)

    monkeypatch.setattr(lock, "JVM_ENDS", 0.0)
    with pytest.raises(
        CheckpointError, match=rf"JVM of an earlier run .* is still running \(process {jvm}\)"
    ):
        CheckpointLock(checkpoint, "shop.ticks").take()
    monkeypatch.setattr(lock, "JVM_ENDS", PATIENCE)
    os.kill(jvm, signal.SIGCONT)

    with CheckpointLock(checkpoint, "shop.ticks"):
        assert jvm not in session_of(running)
    assert emptied(running) == {}
