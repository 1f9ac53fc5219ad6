"""When a server that registers with another one is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.devstack.servers import hdfs, spark_cluster
from millstream.devstack.supervisor.server_spec import ServerSpec

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.servers.registration import Registration


@pytest.mark.parametrize(
    ("registration", "server"),
    [(spark_cluster.REGISTRATION, spark_cluster.WORKERS[0]), (hdfs.REGISTRATION, hdfs.DATA_NODE)],
)
def test_a_server_is_ready_once_this_start_has_registered(
    tmp_path: Path, registration: Registration, server: str
) -> None:
    log = tmp_path / "log"
    log.write_text(f"{registration.started}\n{registration.registered}\n")
    log_size = log.stat().st_size
    lines = ["the JVM warns\n", f"{registration.started}\n", f"{registration.registered}\n"]

    def writes_a_line() -> bool:
        """Let the running server write its next line. It ends after the last one."""
        if not lines:
            return False
        with log.open("a") as file:
            file.write(lines.pop(0))
        return True

    part = ServerSpec(server, ("java",), str(log))

    assert registration.wait(part, "127.0.0.1:7077", 60.0, writes_a_line, log_size)
    assert lines == []


def test_a_server_that_has_run_since_before_is_ready(tmp_path: Path) -> None:
    registration, log = spark_cluster.REGISTRATION, tmp_path / "log"
    log.write_text(f"{registration.started}\n{registration.registered}\n")
    part = ServerSpec(spark_cluster.WORKERS[0], ("java",), str(log))

    assert registration.wait(part, "127.0.0.1:7077", 60.0, lambda: True, 0)
