"""Identify processes by pid and start time, so that a reused pid is not mistaken for the old process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

_LOOK = 0.02


@dataclass(frozen=True)
class Identity:
    """One process: its pid, and its start time as reported by the system (clock ticks since boot on Linux)."""

    pid: int
    born: str

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Return the process with this pid, or None if there is none or it is a zombie."""
        born = _start_time(pid)
        return None if born is None else cls(pid, born)

    @classmethod
    def current(cls) -> Identity:
        """Return the current process."""
        return cls(os.getpid(), _start_time(os.getpid()) or "")

    @property
    def is_alive(self) -> bool:
        """Whether exactly this process still runs."""
        return _start_time(self.pid) == self.born

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def wait_for_exit(processes: Iterable[Identity], seconds: float) -> bool:
    """Wait until all processes have ended; return False if one still runs after `seconds`."""
    remaining = list(processes)
    stop = time.monotonic() + seconds
    while remaining := [process for process in remaining if process.is_alive]:
        if time.monotonic() > stop:
            return False
        # `wait` works only for child processes, so poll.
        time.sleep(_LOOK)
    return True


def _start_time(pid: int) -> str | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return _start_time_from_ps(pid) if not Path("/proc/self/stat").exists() else None
    # The name in brackets may contain spaces and brackets; the fields after the last bracket are regular.
    rest = text.rpartition(")")[2].split()
    return None if rest[0] in "ZX" else rest[19]


def _start_time_from_ps(pid: int) -> str | None:
    """Return the start time of a process on a system without /proc."""
    output = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 - the location of ps depends on the system
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    state, _, born = output.partition(" ")
    return None if not state or state.startswith("Z") else born.strip()
