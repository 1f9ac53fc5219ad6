"""The stack's Kafka broker: one KRaft node (broker and controller) on 127.0.0.1, for its own user only."""

from __future__ import annotations

import base64
import os
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

from millstream.devstack.ports import LOCAL, accepts_connections, wait_until
from millstream.devstack.servers.broker_access import compile_access_check
from millstream.devstack.supervisor.server_spec import ServerSpec
from millstream.diagnostics.failure import NotReady
from millstream.spark.jars.jar_cache import ensure_jars
from millstream.spark.java_discovery import find_java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.devstack.supervisor.state import Home

NAME = "kafka"
# With C1 only and the serial collector the broker starts in half the time and leaves the cores to Spark.
_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
# Paths are relative to the folder of the stack, in which servers are started: a property file is Latin-1, and Kafka
# and Log4j split a path at a comma.
# Topics are declared, so that a typing error does not create one. One node stores one replica. Records are
# kept unless the topic is configured otherwise, because traffic may have old timestamps. The cleaner's
# buffer (128 MB by default) would be a quarter of this heap. An idle controller appends nothing; by default it
# writes a record for its replicas twice a second.
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{local}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{local}:{port},CONTROLLER://{local}:{controller}
advertised.listeners=PLAINTEXT://{local}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
num.partitions=4
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
metadata.max.idle.interval.ms=0
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
num.recovery.threads.per.data.dir=2
"""
_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


def prepare(home: Home, port: int, controller: int, report: Callable[[str], None]) -> ServerSpec:
    """Write the broker's settings, format its folder if it is empty, and return its server spec.

    Raises NotReady if Java or the jars are missing, the access check cannot be compiled, or the folder cannot be
    formatted.
    """
    java = find_java()
    jars = ensure_jars("broker", report)
    access = compile_access_check(java, jars, report)
    data, settings, logging = home / NAME, home / "kafka.properties", home / "kafka-log4j2.properties"
    values = {"local": LOCAL, "port": port, "controller": controller, "data": NAME}
    settings.write_text(_SETTINGS.format(**values))
    logging.write_text(_LOGGING)
    run = (
        str(java.binary),
        *_JVM,
        f"-Dlog4j2.configurationFile={logging.name}",
        "-cp",
        # Kafka's own class of the same name comes after it.
        os.pathsep.join(map(str, [*([access] if access else []), *jars])),
    )
    if not (data / "meta.properties").exists():
        report("formatting the broker's folder")
        _format(run, settings, home)
    return ServerSpec(NAME, (*run, "kafka.Kafka", str(settings)), str(home.log(NAME)), grace=6.0)


def wait_for_broker(address: str, seconds: float, running: Callable[[], bool]) -> bool:
    """Wait until the broker at HOST:PORT returns its metadata; False if it stops `running` or the time is over."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - heavy, and only needed here
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    deadline = time.monotonic() + seconds
    port = int(address.rpartition(":")[2])
    # librdkafka waits longer after each refused connection, so poll the port directly until it is open.
    is_local = address.startswith(f"{LOCAL}:")
    if is_local and not wait_until(lambda: accepts_connections(port), seconds, running):
        return False
    admin = AdminClient(
        {"bootstrap.servers": address, "log_level": 0, "socket.timeout.ms": 5000}, error_cb=_quiet
    )
    while time.monotonic() < deadline and running():
        try:
            if admin.list_topics(timeout=2).brokers:
                return True
        except KafkaException:
            # The port is open before the broker answers.
            time.sleep(0.05)
    return False


def _quiet(error: object) -> None:
    """Ignore errors: a broker that is still starting refuses connections."""


def _format(run: tuple[str, ...], settings: Path, home: Home) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # StorageTool reads an identifier that begins with a dash as an option.
    cluster = "m" + cluster[1:]
    result = subprocess.run(
        [*run, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster, "-c", str(settings)],
        capture_output=True,
        text=True,
        check=False,
        cwd=home.path,
    )
    if result.returncode:
        last = (result.stderr.strip() or result.stdout.strip() or "no reason given").splitlines()[-1]
        raise NotReady(
            f"the broker's folder could not be formatted: {last}",
            "check the folder's permissions and the free space, or run 'millstream doctor'",
        )
