"""Choose the ports of the local servers, the same each time for a folder, and wait until a server listens."""

from __future__ import annotations

import socket
import time
import zlib
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCAL = "127.0.0.1"
# Below the range that systems assign to outgoing connections (32768 and up on Linux): otherwise a client that
# keeps trying to reach a stopped server could be assigned the server's own port.
_FIRST, _LAST = 19_000, 31_999
_STEP = 4


def is_port_free(port: int) -> bool:
    """Return whether a server could listen on this port of 127.0.0.1."""
    with socket.socket() as probe:
        # As servers do, so that a connection in TIME_WAIT does not block the port, but a listener does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCAL, port))
        except OSError:
            return False
        return True


def accepts_connections(port: int, seconds: float = 0.5) -> bool:
    """Return whether a process accepts connections on this port."""
    try:
        with socket.create_connection((LOCAL, port), timeout=seconds):
            return True
    except OSError:
        return False


def wait_until(is_ready: Callable[[], bool], seconds: float, is_running: Callable[[], bool]) -> bool:
    """Wait until a server is ready. False if that takes longer than `seconds`, or if the server ends."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and is_running():
        if is_ready():
            return True
        # There is no notification when a server is ready, so poll.
        time.sleep(0.05)
    return False


def choose_port(
    folder: Path, nth: int, previous: int | None = None, used: frozenset[int] = frozenset()
) -> int:
    """Return the port of a stack's `nth` listener: its previous port, or a free one derived from the folder."""
    if previous is not None and previous not in used and is_port_free(previous):
        return previous
    span = _LAST - _FIRST + 1
    begin = zlib.crc32(str(folder.resolve()).encode()) % (span // _STEP) * _STEP + nth
    for step in range(0, span, _STEP):
        port = _FIRST + (begin + step) % span
        if port not in used and is_port_free(port):
            return port
    raise NotReady(f"there is no free port between {_FIRST} and {_LAST}", "stop a process that listens there")


def require_free_port(port: int, server: str, option: str) -> int:
    """Return the requested port. Raises NotReady if it is taken or needs rights that this process lacks."""
    if not is_port_free(port):
        raise NotReady(
            f"port {port}, requested for {server}, is taken",
            f"stop the process that listens there, or omit {option}",
        )
    return port
