"""Describe the driver that has a lease, and find out whether it has ended."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from millstream.checkpoint.remote.file_system import file_system


def describe_self(owner: str) -> dict[str, Any]:
    """Return what a driver writes into its lease."""
    return {
        "owner": owner,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "client": file_system().client_process(),
    }


def describe_owner(owner: dict[str, Any]) -> str:
    """Describe the owner of a lease for a message, from what it wrote."""
    if not owner:
        return "another run that has just begun"
    return f"'{owner.get('owner')}' (process {owner.get('pid')} on {owner.get('host')}, since {owner.get('since')})"


def has_ended(owner: dict[str, Any]) -> bool:
    """Return whether both processes of a driver on this machine have ended. False for another machine's."""
    if not owner or owner.get("machine") != _machine():
        return False
    processes = [process for process in (owner.get("pid"), owner.get("client")) if process is not None]
    return not any(_is_alive(int(process)) for process in processes)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        # A process whose parent has not asked for its exit code is listed and does nothing.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        return True


def _machine() -> str:
    """Identify the running kernel and the namespace of process ids, which equally named containers do not share."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - the link's text, which is no path
    except OSError:
        return f"{socket.gethostname()} {os.getpid()}"
