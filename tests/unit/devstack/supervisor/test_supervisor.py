"""The guardian's servers, when its folder is deleted or the disk is full."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.devstack.supervisor.state import Home
from millstream.devstack.supervisor.supervisor import StackSupervisor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 20.0
WAITS = (sys.executable, "-c", "import threading; threading.Event().wait()")


@pytest.fixture
def guardian(tmp_path: Path) -> Iterator[StackSupervisor]:
    """A guardian of one server, which runs."""
    home = Home(tmp_path)
    home.make()
    home.write("parts.json", {"waits": ServerSpec("waits", WAITS, str(home.log("waits"))).to_json()})
    guardian = StackSupervisor(home, attached=False)
    guardian._step()
    yield guardian
    for child in guardian.children.values():
        child.kill()
        child.wait()


def step_until_ended(guardian: StackSupervisor) -> None:
    until = time.monotonic() + PATIENCE
    while guardian.children and time.monotonic() < until:
        guardian._step()
        threading.Event().wait(0.02)


def test_a_stack_whose_folder_is_deleted_ends(guardian: StackSupervisor) -> None:
    (child,) = guardian.children.values()
    guardian._step()
    assert child.poll() is None
    shutil.rmtree(guardian.home.project / ".millstream")

    step_until_ended(guardian)

    assert guardian.leaving
    assert child.poll() is not None


def test_a_full_disk_ends_no_server_and_the_state_is_written_later(
    guardian: StackSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    (child,) = guardian.children.values()

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(Home, "write", fail)
        child.kill()
        child.wait()
        guardian._step()
    state = guardian.home.state()
    assert state is not None
    assert state.servers["waits"].state == "running"
    guardian._step()

    state = guardian.home.state()
    assert state is not None
    assert state.servers["waits"].state == "failed"
