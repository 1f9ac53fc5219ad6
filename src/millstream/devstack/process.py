"""Processes by identity: a pid together with its start, so that a reused pid is not the old process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable

# prctl(2): the signal that the kernel sends to a process when the thread that started it ends.
_PR_SET_PDEATHSIG = 1
_LOOK = 0.02


@dataclass(frozen=True)
class Identity:
    """One process: its pid, and its start as the system tells it (clock ticks since boot on Linux)."""

    pid: int
    born: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """The process that has this pid, or None when there is none or it is a zombie."""
        born = _born(pid)
        return None if born is None else cls(pid, born)

    @classmethod
    def own(cls) -> Identity:
        """The process that asks."""
        return cls(os.getpid(), _born(os.getpid()) or "")

    @property
    def alive(self) -> bool:
        """Does this very process still run?"""
        return _born(self.pid) == self.born

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def ended(processes: Iterable[Identity], seconds: float) -> bool:
    """Wait until all have ended; False when one still runs after that many seconds."""
    waiting = list(processes)
    stop = time.monotonic() + seconds
    while waiting := [one for one in waiting if one.alive]:
        if time.monotonic() > stop:
            return False
        # Processes that are not our children cannot be waited for.
        time.sleep(_LOOK)
    return True


def dies_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """What a child runs before exec to get `number` when its parent ends; None where that cannot be had.

    Call it from a thread that lives as long as the child should: the kernel watches the thread.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def watch() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            os._exit(1)  # the parent ended between fork and prctl: nobody would send the signal

    return watch


def _born(pid: int) -> str | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return _born_elsewhere(pid) if not Path("/proc/self/stat").exists() else None
    # The name in brackets may hold spaces and brackets; what follows the last one is regular.
    rest = text.rpartition(")")[2].split()
    return None if rest[0] in "ZX" else rest[19]


def _born_elsewhere(pid: int) -> str | None:
    """The start of a process on a system without /proc."""
    told = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 - ps stands where the system has it
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    state, _, born = told.partition(" ")
    return None if not state or state.startswith("Z") else born.strip()
