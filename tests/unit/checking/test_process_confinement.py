"""What a confined process cannot do, asked in a child of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.checking import process_confinement
from millstream.checking.process_confinement import Confinement, confine_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAM = """
import socket, sys
from pathlib import Path
from millstream.checking.process_confinement import confine_process
inside, outside = Path(sys.argv[1]), Path(sys.argv[2])
open_doors = confine_process([inside]).open_doors()
def fails(act):
    try:
        act()
    except OSError:
        return True
    return False
(inside / "file").write_text("x")
Path("/dev/null").write_text("x")
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print(len(open_doors), fails(lambda: (outside / "file").write_text("x")), fails(lambda: (outside / "old").unlink()),
      fails(lambda: socket.create_connection(("192.0.2.1", 80), timeout=3)))
"""


def test_a_confined_process_writes_only_its_folder_and_reaches_only_itself(
    tmp_path: Path, run_program: Callable[..., str]
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "old").touch()

    doors, *held = run_program(PROGRAM, str(inside), str(outside)).split()

    # A kernel that does not hold something must have said so.
    assert held == ["True"] * 3 or int(doors) > 0
    assert (outside / "old").exists() or int(doors) > 0


@pytest.fixture
def run_program() -> Callable[..., str]:
    """Run a Python program in a process of its own, and return what it prints."""

    def run(program: str, *words: str) -> str:
        command = [sys.executable, "-c", program, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout

    return run


def test_a_process_that_ignores_the_end_of_its_children_is_confined(
    tmp_path: Path, run_program: Callable[..., str]
) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "old").touch()
    ignoring = "import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"

    results = [run_program(start + PROGRAM, str(inside), str(outside)) for start in (ignoring, "")]

    assert results[0] == results[1]


def test_a_child_that_dies_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def die(_library: object) -> str:
        os._exit(3)

    monkeypatch.setattr(process_confinement, "_enter_network", die)

    assert confine_process([tmp_path], files=False).network == "a process that tries it ends with status 768"


def test_what_the_kernel_does_not_hold_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Library:
        def unshare(self, _flags: int) -> int:
            return -1

        def syscall(self, *_words: object) -> int:
            return -1

    monkeypatch.setattr(process_confinement.ctypes, "CDLL", lambda *_args, **_named: Library())
    monkeypatch.setattr(process_confinement.ctypes, "get_errno", lambda: 1)

    doors = confine_process([tmp_path]).open_doors()

    assert [door.partition("(")[0] for door in doors] == [
        "the kernel does not cut off the network ",
        "the kernel does not protect files ",
    ]
    assert "Operation not permitted" in doors[0]
    assert Confinement().open_doors() == []


def test_a_process_stays_in_its_network_if_the_kernel_refuses_a_loopback_in_another_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    network, callers = 0x40000000, tmp_path / "callers"

    class Library:
        def unshare(self, flags: int) -> int:
            with callers.open("a") as file:
                file.write(f"{os.getpid()}\n")
            return -1 if flags == network else 0

    def refuse(_path: str, _text: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(process_confinement.ctypes, "CDLL", lambda *_args, **_named: Library())
    monkeypatch.setattr(process_confinement, "_write", refuse)

    reason = confine_process([tmp_path], files=False).network

    assert reason == "user namespace: Operation not permitted"
    assert str(os.getpid()) not in callers.read_text().split()
