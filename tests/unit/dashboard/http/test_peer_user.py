"""Who is at the other end of a connection is read from Linux's own tables."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.dashboard.http.peer_user import _overflow, is_same_user, peer_uid

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the tables are Linux's")

PEER, OWN = ("127.0.0.1", 0xC001), ("127.0.0.1", 4711)
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
V4 = "0100007F"
MAPPED = "0000000000000000FFFF00000100007F"


def row(local: str, remote: str, *, state: str = "01", uid: int = 1000, inode: int = 77) -> str:
    return (
        f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:5} 0 {inode} 1 0 20 4\n"
    )


def table(folder: Path, *rows: str) -> list[Path]:
    (folder / "tcp").write_text(HEAD + "".join(rows))
    return [folder / "tcp", folder / "not-there"]


@pytest.mark.skipif(sys.byteorder != "little", reason="the rows are those of a little-endian machine")
class TestTables:
    def test_the_row_of_the_peer_is_taken_and_not_that_of_the_server(self, tmp_path: Path) -> None:
        rows = table(
            tmp_path, row(f"{V4}:1267", f"{V4}:C001", uid=7), row(f"{V4}:C001", f"{V4}:1267", uid=1000)
        )

        assert peer_uid(PEER, OWN, rows) == 1000

    def test_a_client_of_ipv6_that_reaches_an_address_of_ipv4_is_found(self, tmp_path: Path) -> None:
        rows = table(tmp_path, row(f"{MAPPED}:C001", f"{MAPPED}:1267", uid=1000))

        assert peer_uid(PEER, OWN, rows) == 1000

    @pytest.mark.parametrize(
        "left",
        [
            row(f"{V4}:C001", f"{V4}:1267", state="06", uid=0, inode=0),
            row(f"{V4}:C001", f"{V4}:1267", uid=0, inode=0),
            row(f"{V4}:C001", f"{V4}:1267", state="04", uid=0),
            row(f"{V4}:C001", f"{V4}:1268", uid=0),
            row(f"{V4}:C001", f"{V4}:1267", uid=_overflow()),
        ],
        ids=["time-wait", "orphan", "closing", "another server", "another namespace"],
    )
    def test_a_row_that_says_nothing_of_a_live_peer_names_nobody(self, left: str, tmp_path: Path) -> None:
        assert peer_uid(PEER, OWN, table(tmp_path, left)) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_of_this_process_is_of_its_own_user(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, 0), family=family)
    with server, socket.create_connection(server.getsockname()[:2]):
        accepted, _ = server.accept()
        with accepted:
            assert peer_uid(accepted.getpeername(), accepted.getsockname()) == os.geteuid()
            assert is_same_user(accepted)


def test_a_connection_that_nobody_knows_is_of_nobody() -> None:
    assert peer_uid(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
