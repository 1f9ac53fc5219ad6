"""How long a server may take to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.devstack.servers.ready import LogGrowth

if TYPE_CHECKING:
    from pathlib import Path


def test_a_start_is_slow_and_not_stuck_while_the_log_of_the_server_grows(tmp_path: Path) -> None:
    log, times = tmp_path / "log", iter(range(0, 1000, 40))
    growth = LogGrowth(log, lambda: float(next(times)))

    before = growth.pause()
    log.write_text("one line\n")
    created = growth.pause()
    log.write_text("one line\nanother\n")
    grown = growth.pause()
    silent = growth.pause()

    assert [before, created, grown, silent] == [40, 40, 40, 80]
