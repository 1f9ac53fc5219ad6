"""What this machine, or the container on it, gives a process: cores and memory."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MIB = 1024 * 1024


def cores() -> int:
    """Processors that this process may use: its affinity, and its container's quota rounded up."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _said("cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit():
        return max(1, min(affinity, -(-int(quota) // int(period))))
    return affinity


def memory() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _said("memory.max")
    return min(machine, int(limit)) if limit.isdigit() else machine


def _said(file: str) -> str:
    try:
        return (CGROUP / file).read_text().strip()
    except OSError:
        return ""
