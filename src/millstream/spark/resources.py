"""Find out how many cores and how much memory this machine, or its container, gives a process."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MIB = 1024 * 1024


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
