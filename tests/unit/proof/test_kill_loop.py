"""Faults and kills of a proof, with drivers that run no pipeline."""

from __future__ import annotations

import os
import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from millstream.checkpoint.lock import lock_file
from millstream.diagnostics.failure import MillstreamError
from millstream.proof.driver_pool import Drivers
from millstream.proof.environment import ProofRun
from millstream.proof.faults import FrozenDriver
from millstream.proof.kill_loop import KillLoop
from millstream.proof.kill_plan import RANDOM, KilledProcess, KillTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millstream.proof.driver import Driver

# The first driver freezes once it is armed, with its first order or a later one, and ends as the variables say; any
# other one commits batch after batch.
ACTING = """
import json, os, signal, sys, threading

def emit(event, **data):
    print(json.dumps({"event": event, "query": "orders", **data}), flush=True)

emit("ready")
order = sys.stdin.readline()
if not order:
    sys.exit(0)
is_first = not os.path.exists(os.environ["MARK"])
open(os.environ["MARK"], "w").close()
emit("query_started")
if is_first:
    json.loads(order)["failpoints"] or sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGSTOP)
    # Whoever waits for its end is behind in reading what it reports.
    print("\\n" * 60000)
    if os.environ["REASON"]:
        emit("query_failed", reason=os.environ["REASON"])
    sys.exit(int(os.environ["CODE"]))
while not threading.Event().wait(0.02):
    emit("batch_committed")
"""


@pytest.fixture
def make_loop(tmp_path: Path) -> Iterator[Callable[..., KillLoop]]:
    """Make a loop over one query, whose first driver ends with that code and reason."""
    opened: list[Drivers] = []

    def make(code: int = 3, reason: str = "") -> KillLoop:
        env = {**os.environ, "MARK": str(tmp_path / "mark"), "CODE": str(code), "REASON": reason}
        opened.append(Drivers([sys.executable, "-c", ACTING], env, tmp_path))
        pipeline = SimpleNamespace(queries={"orders": None}, checkpoint_folder=lambda query: tmp_path / query)
        feed = SimpleNamespace(extra=lambda: None, next=lambda: None, portions_left=0)
        return KillLoop(ProofRun(cast("Any", pipeline), cast("Any", feed), opened[-1]), lambda _: None)

    yield make
    for drivers in opened:
        drivers.close()


@pytest.mark.parametrize("code", [1, 3])
def test_a_frozen_driver_ends_with_a_reason_after_its_successor_has_written(
    make_loop: Callable[..., KillLoop], tmp_path: Path, code: int
) -> None:
    loop = make_loop(code, "another run committed a batch")
    lock = lock_file(tmp_path / "orders")
    lock.parent.mkdir(parents=True)
    lock.touch()

    loop.run_faults([FrozenDriver("delta.before")])

    assert loop.scene.tally.faults == {"zombie-delta": 1}
    assert loop.scene.drivers.started == 2
    assert not lock.exists()


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [(0, "all was read", "ended with 0: all was read"), (3, "", "ended with 3 and no explanation")],
)
def test_a_frozen_driver_that_ends_well_or_silently_is_a_defect(
    make_loop: Callable[..., KillLoop], code: int, reason: str, message: str
) -> None:
    with pytest.raises(MillstreamError, match=f"under the fault zombie-delta a driver {message}"):
        make_loop(code, reason).run_faults([FrozenDriver("delta.before")])


@pytest.mark.parametrize("victim", [KilledProcess.BOTH, KilledProcess.PYTHON])
def test_a_driver_is_killed_where_it_stands_and_the_kill_is_counted(
    make_loop: Callable[..., KillLoop], victim: KilledProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, killed = make_loop(), []
    start = loop.scene.drivers.start

    def start_and_note(armed: str | None = None) -> Driver:
        killed.append(start(armed))
        return killed[-1]

    monkeypatch.setattr(loop.scene.drivers, "start", start_and_note)

    loop.kill([KillTarget(RANDOM, seconds=0.0, victim=victim)], 1)

    assert [driver.wait(0) for driver in killed] == [-signal.SIGKILL]
    assert loop.scene.tally.victims == {(RANDOM, str(victim)): 1}


def test_a_driver_whose_jvm_was_killed_ends_by_itself(make_loop: Callable[..., KillLoop]) -> None:
    loop = make_loop(1, "the JVM ended")

    loop.kill([KillTarget("batch.begun", victim=KilledProcess.JVM)], 1)

    assert loop.scene.tally.victims == {("batch.begun", "jvm"): 1}


def test_a_driver_that_ends_well_without_its_jvm_is_a_defect(make_loop: Callable[..., KillLoop]) -> None:
    with pytest.raises(MillstreamError, match="ended with 0 after its JVM had been killed: all was read"):
        make_loop(0, "all was read").kill([KillTarget("batch.begun", victim=KilledProcess.JVM)], 1)
