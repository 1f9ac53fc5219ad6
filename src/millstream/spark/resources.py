"""Find out what this machine, or its container, gives a process: cores, memory, and how many open files it has."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

CGROUP = Path("/sys/fs/cgroup")
PROC = Path("/proc")
# The files of a group in version 1 of control groups, and that of memory in version 2.
_QUOTA, _PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
_MEMORY, _MEMORY_OF_VERSION_1 = "memory.max", "memory.limit_in_bytes"
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
    counts = [affinity]
    for group in _list_groups("cpu"):
        # Version 2 has both in one file.
        quota, _, period = _read_limit(group / "cpu.max").partition(" ")
        quota, period = quota or _read_limit(group / _QUOTA), period or _read_limit(group / _PERIOD)
        if quota.isdigit() and period.isdigit() and int(period):
            counts.append(-(-int(quota) // int(period)))
    return max(1, min(counts))


def available_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or its container's if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [
        _read_limit(group / file)
        for group in _list_groups("memory")
        for file in (_MEMORY, _MEMORY_OF_VERSION_1)
    ]
    return min([machine, *(int(limit) for limit in limits if limit.isdigit())])


def _list_groups(controller: str) -> list[Path]:
    """Return the folders of the control groups of which one may limit this process: its own and all above it.

    Version 1 of control groups has a hierarchy for each controller, version 2 has one for all. A container often sees
    its own group as the root. Other systems than Linux have none of the folders.
    """
    roots = {"": CGROUP, controller: CGROUP / controller}
    groups = list(roots.values())
    try:
        lines = (PROC / "self/cgroup").read_text(errors="replace").splitlines()
    except OSError:
        return groups
    for line in lines:
        # Such as `4:cpu,cpuacct:/user.slice`, and `0::/user.slice` in version 2.
        controllers, _, path = line.partition(":")[2].partition(":")
        parts = PurePosixPath(path).parts[1:]
        if ".." in parts:
            # The group is outside of what this process sees.
            continue
        for root in roots.keys() & controllers.split(","):
            groups += [roots[root].joinpath(*parts[: count + 1]) for count in range(len(parts))]
    return groups


def _read_limit(file: Path) -> str:
    try:
        return file.read_text().strip()
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
