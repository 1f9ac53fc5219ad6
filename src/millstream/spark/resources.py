"""Find out what this machine, or its container, gives a process: cores, memory, and how many open files it has."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
PROC = Path("/proc")
MIB = 1024 * 1024
_LIMIT = re.compile(r"^Max open files\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class OpenFiles:
    """The number of open files of a process, sockets included, and the most that it may have open."""

    process: str
    """`jvm` or `python`."""
    open: int
    max: int
    leak: str = ""
    """Why the number only grows until the process ends; empty if no such reason is known."""
    reserve: int = 0
    """The number of files that must be left for the batches in progress, because of the leak."""

    @property
    def share(self) -> float:
        """The open files as a share of the most."""
        return self.open / self.max


OpenFilesReader = Callable[[], tuple[OpenFiles, ...]]


def available_cores() -> int:
    """Return the processors that this process may use: its affinity, and its container's quota rounded up."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _read_limit("cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit():
        return max(1, min(affinity, -(-int(quota) // int(period))))
    return affinity


def available_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or its container's if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read_limit("memory.max")
    return min(machine, int(limit)) if limit.isdigit() else machine


def _read_limit(file: str) -> str:
    try:
        return (CGROUP / file).read_text().strip()
    except OSError:
        return ""


def open_files_reader(jvm: str, leak: str = "", reserve: int = 0, proc: Path = PROC) -> OpenFilesReader:
    """Return a function that counts the open files of the JVM, a process id, and of this process.

    A JVM without a free file accepts no call, so Linux is asked. The function returns nothing on other systems, for a
    process without a limit, and for the JVM of another user. `leak` is the reason why sockets stay open in the JVM,
    and `reserve` as in `OpenFiles`. Each socket keeps a local port, so the JVM may not have more of them than the
    machine has ports.
    """
    folders = {"jvm": proc / jvm, "python": proc / str(os.getpid())}

    def read() -> tuple[OpenFiles, ...]:
        counts = []
        for process, folder in folders.items():
            try:
                number = len(os.listdir(folder / "fd"))  # noqa: PTH208 - half the time of iterdir()
                limit = _LIMIT.search((folder / "limits").read_text())
            except OSError:
                continue
            if limit is not None:
                files = OpenFiles(process, number, int(limit[1]))
                if leak and process == "jvm":
                    files = replace(files, max=min(files.max, _count_ports(proc)), leak=leak, reserve=reserve)
                counts.append(files)
        return tuple(counts)

    return read


def _count_ports(proc: Path) -> int:
    """Return the number of local ports that Linux gives to sockets that ask for any; if unknown, all there are."""
    try:
        first, last = (proc / "sys/net/ipv4/ip_local_port_range").read_text().split()
    except OSError:
        return 65_535
    return int(last) - int(first) + 1
