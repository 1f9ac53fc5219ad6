"""Wait for servers of which one leads and the others register with it: Spark's master and workers, HDFS's nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.ports import accepts_connections, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.devstack.supervisor.server_spec import ServerSpec


@dataclass(frozen=True)
class Registration:
    """The name of the leading server, and what the others write to their logs at a start and once registered."""

    leader: str
    started: str
    registered: str

    def wait(
        self, part: ServerSpec, address: str, seconds: float, running: Callable[[], bool], log_size: int
    ) -> bool:
        """Wait until the leader accepts connections or another server has registered.

        False if that takes longer than `seconds`, or if the server ends. The first `log_size` bytes of its log are
        those of earlier starts.
        """
        port = int(address.rpartition(":")[2])
        if part.name == self.leader:
            return wait_until(lambda: accepts_connections(port), seconds, running)
        return wait_until(lambda: self._is_registered(Path(part.log), log_size), seconds, running)

    def _is_registered(self, log: Path, log_size: int) -> bool:
        """Return whether the last start in a log has registered. It has not written the first `log_size` bytes."""
        try:
            with log.open("rb") as file:
                file.seek(log_size)
                text = file.read().decode(errors="replace")
        except FileNotFoundError:
            return False
        return self.registered in text[max(0, text.rfind(self.started)) :]
