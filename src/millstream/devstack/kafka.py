"""The stack's Kafka broker: one real KRaft node, broker and controller in one, on 127.0.0.1 only."""

from __future__ import annotations

import base64
import os
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

from millstream.devstack.part import Part
from millstream.devstack.ports import LOCAL, answers
from millstream.diagnostics.failure import NotReady
from millstream.runtime.jars import ensure
from millstream.runtime.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.devstack.state import Home

NAME = "kafka"
# C1 only and the serial collector: the broker starts in half the time, and leaves the cores to Spark.
_JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true")
# Topics are declared, never made by a typing error. One node keeps one copy of each. Records stay until
# the topic says otherwise: traffic may carry times of long ago. The cleaner's buffer (128 MB by
# default) is a quarter of this heap.
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


def prepare(home: Home, port: int, controller: int, tell: Callable[[str], None]) -> Part:
    """Write the broker's settings, format its folder if it is empty, and say how it is started.

    Raises NotReady when there is no Java, no jars, or the folder cannot be formatted.
    """
    java = find_java()
    jars = ensure("broker", tell)
    data, settings, logging = home / NAME, home / "kafka.properties", home / "kafka-log4j2.properties"
    values = {"local": LOCAL, "port": port, "controller": controller, "data": _escaped(data)}
    settings.write_text(_SETTINGS.format(**values))
    logging.write_text(_LOGGING)
    run = (
        str(java.binary),
        *_JVM,
        f"-Dlog4j2.configurationFile={logging}",
        "-cp",
        os.pathsep.join(map(str, jars)),
    )
    if not (data / "meta.properties").exists():
        tell("formatting the broker's folder")
        _format(run, settings)
    return Part(NAME, (*run, "kafka.Kafka", str(settings)), str(home.log(NAME)), grace=6.0)


def ready(address: str, seconds: float, running: Callable[[], bool]) -> bool:
    """Wait until the broker at HOST:PORT gives its metadata; False when `running` says no, or time is up."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - heavy, and only needed here
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    stop = time.monotonic() + seconds
    port = int(address.rpartition(":")[2])
    # librdkafka waits longer after each refused connection: knock by hand until the door is there.
    while address.startswith(f"{LOCAL}:") and not answers(port):
        if time.monotonic() > stop or not running():
            return False
        # Nobody tells when a port is open: it is asked for.
        time.sleep(0.05)
    admin = AdminClient(
        {"bootstrap.servers": address, "log_level": 0, "socket.timeout.ms": 5000}, error_cb=_quiet
    )
    while time.monotonic() < stop and running():
        try:
            if admin.list_topics(timeout=2).brokers:
                return True
        except KafkaException:
            # The port is open before the broker answers.
            time.sleep(0.05)
    return False


def _quiet(error: object) -> None:
    """A broker that is still starting refuses connections; that is no news."""


def _escaped(path: Path) -> str:
    """A path as a value of a properties file."""
    return str(path).replace("\\", "\\\\")


def _format(run: tuple[str, ...], settings: Path) -> None:
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # StorageTool reads an identifier that begins with a dash as an option.
    cluster = "m" + cluster[1:]
    done = subprocess.run(
        [*run, "kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster, "-c", str(settings)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise NotReady(
            f"the broker's folder could not be formatted: {last}",
            "look at the folder's rights and the free space, or run 'millstream doctor'",
        )
