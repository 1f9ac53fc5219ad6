"""Wait until the servers of a stack answer, and create the resources that a pipeline needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.devstack.ports import accepts_connections, wait_until
from millstream.devstack.supervisor.state import S3_SERVER, Endpoints, Home, ServerStatus, without_credentials
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from millstream.connectors.api.values.problem import RequiredResource
    from millstream.devstack.supervisor.server_spec import ServerSpec

# Servers answer within 4 seconds on two cores; a machine under load gets ten times that.
_SECONDS = 45.0

Progress = Callable[[str], None]

# The clients of Kafka and PostgreSQL are imported where they are needed, because every command calls
# `stack.environment`, which must not load them.


def wait_for_servers(home: Home, report: Progress) -> None:
    """Wait until all servers answer. Raises NotReady with the last log line of a server that does not."""
    own_servers = [part for part in home.parts().values() if part.run]
    outside = home.addresses().get("outside", {})
    checks: list[Callable[[], None]] = [lambda part=part: _await_own(home, part) for part in own_servers]  # type: ignore[misc]
    checks += [lambda name=name: _await_other(name, outside[name]) for name in outside]  # type: ignore[misc]
    if not checks:
        return
    with ThreadPoolExecutor(len(checks)) as pool:
        for future in [pool.submit(check) for check in checks]:
            future.result()
    report("all servers answer")


def _await_own(home: Home, part: ServerSpec) -> None:
    from millstream.devstack.servers import hdfs, kafka, postgres, spark_cluster  # noqa: PLC0415 - see above

    def is_running() -> bool:
        server_status = _observed_state(home, part)
        return server_status is None or server_status.state == "running"

    endpoints = home.endpoints()
    if part.name == "kafka":
        is_ready = kafka.wait_for_broker(endpoints.kafka, _SECONDS, is_running)
    elif part.name in hdfs.SERVERS:
        is_ready = hdfs.REGISTRATION.wait(part, endpoints.hdfs, _SECONDS, is_running)
    elif part.name in spark_cluster.SERVERS:
        is_ready = spark_cluster.REGISTRATION.wait(part, endpoints.spark, _SECONDS, is_running)
    elif part.name == S3_SERVER:
        port = home.addresses()[S3_SERVER]
        is_ready = wait_until(lambda: accepts_connections(port), _SECONDS, is_running)
    else:
        is_ready = postgres.wait_for_database(endpoints.postgres, _SECONDS, is_running)
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
