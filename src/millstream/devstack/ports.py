"""Ports of the local servers: the same for a folder each time, others while those are taken."""

from __future__ import annotations

import socket
import zlib
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = "127.0.0.1"
# Below the range that systems give to outgoing connections (32768 and up on Linux): a client that
# tries again and again to reach a stopped server there can be handed the server's own port.
_FIRST, _LAST = 19_000, 31_999
_STEP = 4


def free(port: int) -> bool:
    """Could a server listen on this port of 127.0.0.1?"""
    with socket.socket() as trial:
        # As servers do: a connection in TIME_WAIT does not make a port taken, a listener does.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOCAL, port))
        except OSError:
            return False
        return True


def answers(port: int, seconds: float = 0.5) -> bool:
    """Does something accept connections there?"""
    try:
        with socket.create_connection((LOCAL, port), timeout=seconds):
            return True
    except OSError:
        return False


def choose(folder: Path, nth: int, kept: int | None = None, used: frozenset[int] = frozenset()) -> int:
    """The port of a stack's `nth` listener: the one it had, or a free one that the folder's name leads to."""
    if kept is not None and kept not in used and free(kept):
        return kept
    span = _LAST - _FIRST + 1
    begin = zlib.crc32(str(folder.resolve()).encode()) % (span // _STEP) * _STEP + nth
    for step in range(0, span, _STEP):
        port = _FIRST + (begin + step) % span
        if port not in used and free(port):
            return port
    raise NotReady(f"there is no free port between {_FIRST} and {_LAST}", "stop something that listens there")


def demand(port: int, server: str, option: str) -> int:
    """The port that was asked for by name; NotReady when it is taken or needs rights that we lack."""
    if not free(port):
        raise NotReady(
            f"port {port}, asked for {server}, is taken", f"stop what listens there, or leave {option} out"
        )
    return port
