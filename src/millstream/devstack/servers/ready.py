"""Wait until the servers of a stack answer, and create the resources that a pipeline needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.ports import accepts_connections, wait_until
from millstream.devstack.supervisor.state import S3_SERVER, Endpoints, Home, ServerStatus, without_credentials
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from millstream.connectors.api.values.problem import RequiredResource
    from millstream.devstack.supervisor.server_spec import ServerSpec

# Servers answer within 4 seconds on two idle cores. On a loaded machine a server may need minutes, in which it writes
# to its log. A data node that waits for a name node does so too, and for ever.
_SECONDS_WITHOUT_A_LINE = 45.0
_SECONDS = 300.0

Progress = Callable[[str], None]

# The clients of Kafka and PostgreSQL are imported where they are needed, because every command calls
# `stack.environment`, which must not load them.


class LogGrowth:
    """The growth of a server's log, which tells a slow start from one that is stuck."""

    def __init__(self, log: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._size, self._since = self._measure(), clock()

    def pause(self) -> float:
        """Return the seconds since a call of this method last found the log longer, or since the beginning."""
        if (size := self._measure()) != self._size:
            self._size, self._since = size, self._clock()
        return self._clock() - self._since

    def _measure(self) -> int:
        """Return the size of the log in bytes, 0 if there is none yet."""
        return self._log.stat().st_size if self._log.exists() else 0


def wait_for_servers(home: Home, report: Progress, log_sizes: Mapping[str, int]) -> None:
    """Wait until all servers answer. Raises NotReady with the last log line of a server that does not.

    `log_sizes` has the bytes of each log before its server was started, if it did not run already.
    """
    own_servers = [part for part in home.parts().values() if part.run]
    outside = home.addresses().get("outside", {})
    checks: list[Callable[[], None]] = [
        lambda part=part: _await_own(home, part, log_sizes.get(part.name, 0))  # type: ignore[misc]
        for part in own_servers
    ]
    checks += [lambda name=name: _await_other(name, outside[name]) for name in outside]  # type: ignore[misc]
    if not checks:
        return
    with ThreadPoolExecutor(len(checks)) as pool:
        for future in [pool.submit(check) for check in checks]:
            future.result()
    report("all servers answer")


def _await_own(home: Home, part: ServerSpec, log_size: int) -> None:
    from millstream.devstack.servers import hdfs, kafka, postgres, spark_cluster  # noqa: PLC0415 - see above

    def is_running() -> bool:
        server_status = _observed_state(home, part)
        return server_status is None or server_status.state == "running"

    growth = LogGrowth(Path(part.log))

    def is_starting() -> bool:
        return is_running() and growth.pause() < _SECONDS_WITHOUT_A_LINE

    endpoints = home.endpoints()
    if part.name == "kafka":
        is_ready = kafka.wait_for_broker(endpoints.kafka, _SECONDS, is_starting)
    elif part.name in hdfs.SERVERS:
        is_ready = hdfs.REGISTRATION.wait(part, endpoints.hdfs, _SECONDS, is_starting, log_size)
    elif part.name in spark_cluster.SERVERS:
        is_ready = spark_cluster.REGISTRATION.wait(part, endpoints.spark, _SECONDS, is_starting, log_size)
    elif part.name == S3_SERVER:
        port = home.addresses()[S3_SERVER]
        is_ready = wait_until(lambda: accepts_connections(port), _SECONDS, is_starting)
    else:
        is_ready = postgres.wait_for_database(endpoints.postgres, _SECONDS, is_starting)
    if not is_ready:
        problem = "does not answer" if is_running() else "ended while it started"
        last_line = _last_words(Path(part.log))
        raise NotReady(f"{part.name} {problem}: {last_line}", f"read its log: {part.log}")


def _await_other(name: str, address: str) -> None:
    from millstream.devstack.servers import kafka, postgres  # noqa: PLC0415 - see above

    if name == "kafka":
        if not kafka.wait_for_broker(address, 8.0, lambda: True):
            raise NotReady(
                f"the Kafka broker at {address} does not answer", "check --kafka, or start that broker"
            )
    elif reason := postgres.connection_error(address):
        raise NotReady(
            f"the database at {without_credentials(address)} refuses the connection: {reason}",
            "check --postgres-url",
        )


def _observed_state(home: Home, part: ServerSpec) -> ServerStatus | None:
    """Return the guardian's report on exactly this start of a server; None until there is one."""
    state = home.state()
    if state is None:
        return None
    if not state.is_alive:
        return ServerStatus("failed", part.turn)
    server_status = state.servers.get(part.name)
    return server_status if server_status and server_status.turn == part.turn else None


def create_resources(
    home: Home, endpoints: Endpoints, needs: Sequence[RequiredResource], report: Progress
) -> None:
    """Create the required topics, if a broker runs."""
    topic_settings = {
        need.name: need.settings for need in needs if (need.system, need.what) == ("kafka", "topic")
    }
    part = home.parts().get("kafka")
    if not topic_settings or not ("kafka" in home.addresses().get("outside", {}) or (part and part.run)):
        return
    from millstream.devstack.servers import topics  # noqa: PLC0415 - see above

    created = topics.create_topics(endpoints.kafka, topic_settings)
    if created:
        report(f"topics created: {', '.join(created)}")


def _last_words(log: Path) -> str:
    """Return the line of a log that best explains why a server ended."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-200:]
    except OSError:
        return "there is no log"
    error_lines = [line for line in lines if "ERROR" in line or "FATAL" in line or "Exception" in line]
    return (error_lines or lines or ["the log is empty"])[-1].strip()[:300]
