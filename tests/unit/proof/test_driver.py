"""A driver gets ready by itself, waits for its order, and can be stopped where it stands."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import closing
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from millstream.proof.driver import Driver, Order
from millstream.proof.driver_pool import Drivers
from millstream.proof.faults import FrozenDriver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from millstream.proof.environment import ProofRun

# A driver in small: it tells what it was ordered, and stays until it is killed.
OBEDIENT = """
import json, os, signal, sys
print(json.dumps({"event": "ready"}), flush=True)
line = sys.stdin.readline()
if not line:
    sys.exit(0)
print(json.dumps({"event": "query_failed", "reason": line.strip()}), flush=True)
print(json.dumps({"event": "query_started"}), flush=True)
if "stop" in line:
    os.kill(os.getpid(), signal.SIGSTOP)
    sys.exit(3)
signal.pause()
"""


def until(reached: Callable[[], bool]) -> bool:
    """Does it hold within half a minute?"""
    pause = threading.Event()
    return any(reached() or pause.wait(0.02) for _ in range(1500))


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    with closing(Drivers([sys.executable, "-c", OBEDIENT], os.environ, tmp_path)) as result:
        yield result


def test_an_order_arrives_as_it_was_given() -> None:
    order = Order("delta.before=kill@2", to_the_end=True)

    assert (Order.of(order.line()), Order.of("")) == (order, None)


def test_a_driver_begins_when_it_is_told_and_not_before(tmp_path: Path) -> None:
    driver = Driver([sys.executable, "-c", OBEDIENT], os.environ, tmp_path / "log")
    assert (driver.wait(0.3), driver.began) == (None, None)

    driver.go("delta.before=kill")

    assert driver.started.wait(30)
    assert driver.began is not None
    assert '"failpoints": "delta.before=kill"' in driver.last_words()
    driver.kill()
    assert driver.wait(0) == -signal.SIGKILL


def test_the_next_driver_gets_ready_while_one_runs(drivers: Drivers) -> None:
    first = drivers.start()
    assert first.started.wait(30)
    spare = drivers._spare

    drivers.end()

    assert spare is not None
    assert (first.wait(0), spare.wait(0)) == (-signal.SIGKILL, None)
    assert drivers.start(last=True) is spare
    assert drivers.started == 2


def test_a_driver_that_stopped_itself_goes_on_when_it_is_told(drivers: Drivers) -> None:
    driver = drivers.start("delta.before=stop", last=True)
    assert until(lambda: driver.is_frozen)

    driver.resume()

    assert driver.wait(30) == 3


# It commits, with the lock of a table, whenever it is told to, and stops itself at the failpoint.
COMMITTING = """
import fcntl, json, os, signal, sys
table = open("table_lock", "w")
print(json.dumps({"event": "ready"}), flush=True)
fcntl.flock(table, fcntl.LOCK_EX)
for line in sys.stdin:
    print(json.dumps({"event": "query_failed", "reason": line.strip()}), flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    fcntl.flock(table, fcntl.LOCK_UN)
"""


@dataclass
class Scene:
    """As much of a proof as freezes a driver: the input needs nothing, and a wait is one for the driver alone."""

    feed: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(extra=lambda: None))

    def until(
        self, _driver: Driver, event: str, is_reached: Callable[[], bool], *, feeding: bool = True
    ) -> None:
        assert until(is_reached), (event, feeding)


def test_a_driver_is_frozen_where_no_other_query_of_it_is_in_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    driver = Driver([sys.executable, "-c", COMMITTING], os.environ, tmp_path / "log")
    lock = tmp_path / "table_lock"
    fault = FrozenDriver("delta.before", ("table_lock",))
    driver.go("delta.before=stop")
    assert until(lambda: driver.is_frozen)
    assert driver.has_locked([lock])
    assert not driver.has_locked([tmp_path / "log"])

    fault._freeze(cast("ProofRun", Scene()), driver)

    assert driver.is_frozen
    assert not driver.has_locked([lock])
    assert until(lambda: len(driver.troubles) == 2)
    driver.kill()
