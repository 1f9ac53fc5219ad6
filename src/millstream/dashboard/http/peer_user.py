"""Find the user at the other end of a loopback connection, from the tables of Linux in /proc."""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_OVERFLOW = Path("/proc/sys/kernel/overflowuid")
ESTABLISHED = "01"
# A socket without a process, for example in TIME_WAIT. Its uid column is 0, whoever owned it.
NO_INODE = "0"
ROOT = 0


def is_same_user(connection: socket.socket) -> bool:
    """Return whether the peer's socket belongs to this process's user or to root. False if unknown."""
    try:
        uid = peer_uid(connection.getpeername(), connection.getsockname())
    except OSError:
        return False
    return uid is not None and uid in (os.geteuid(), ROOT)


def peer_uid(
    peer: tuple[str, int], local_address: tuple[str, int], tables: Sequence[Path] = TABLES
) -> int | None:
    """Return the uid of the socket at `peer` that is connected to `local_address`, or None. Both are (address, port).

    Linux shows users of other namespaces as one overflow uid, which is no real user; the result is then None.
    """
    overflow = _overflow()
    pairs = {
        (_format_address(mapped, *peer[:2]), _format_address(mapped, *local_address[:2]))
        for mapped in (False, True)
    }
    for table in tables:
        for local, remote, state, uid, inode in _rows(table):
            if state == ESTABLISHED and inode != NO_INODE and (local, remote) in pairs:
                return None if uid == overflow else uid
    return None


def _rows(table: Path) -> Iterator[tuple[str, str, str, int, str]]:
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 9:
            yield fields[1], fields[2], fields[3], int(fields[7]), fields[9]


def _format_address(mapped: bool, host: str, port: int) -> str:
    """Format an address as in the tables; `mapped` formats an IPv4 address as an IPv6 socket shows it."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if mapped and address.version == 4:
        address = ipaddress.ip_address(f"::ffff:{address}")
    packed = address.packed
    words = (int.from_bytes(packed[index : index + 4], sys.byteorder) for index in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def _overflow() -> int:
    try:
        return int(_OVERFLOW.read_text())
    except (OSError, ValueError):
        return 65_534
