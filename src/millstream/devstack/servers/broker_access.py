"""Let only the local broker's own user and root connect to it, by a class compiled for the broker."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.devstack.servers.compiled_class import ServerClass, compile_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from millstream.spark.java_discovery import Java

_CLASS = ServerClass(
    name="org.apache.kafka.common.network.PlaintextChannelBuilder",
    folder="broker-access",
    title="the broker's access check",
    alternative="install PySpark again, or use an existing broker: millstream up --kafka HOST:PORT",
)
# The table with the owner of each TCP connection; the class reads it too.
_TABLE = "/proc/self/net/tcp"


def compile_access_check(java: Java, jars: Sequence[Path], report: Callable[[str], None]) -> Path | None:
    """Return the folder that comes before the broker's jars on its class path.

    Returns None if the system does not report the owner of a connection, as on macOS: every user of such a machine
    can reach the broker. Raises NotReady if the class cannot be compiled.
    """
    if not os.access(_TABLE, os.R_OK):
        report(
            "every user of this machine can reach the broker: the system does not report the owner of a connection"
        )
        return None
    return compile_class(_CLASS, java, jars, report)
