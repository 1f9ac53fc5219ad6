"""Find out whether the master of a standalone cluster answers, before a JVM starts."""

from __future__ import annotations

import contextlib
import re
import socket
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator

_STANDALONE = re.compile(r"spark://(?P<masters>.+)")
_PORT = 7077

# A context that stops while it starts has no scheduler, which its constructor takes for granted.
_STOPPED = re.compile(r"stopped SparkContext|NullPointerException[^\n]*SparkContext")

# Seconds until a master is taken for unreachable. Spark itself would try for a minute.
_PATIENCE = 5.0


def require_master(master: str) -> None:
    """Raise NotReady if `master` names a standalone cluster none of whose masters accepts connections."""
    match = _STANDALONE.fullmatch(master)
    if match is None:
        return
    reasons = [reason for address in match["masters"].split(",") if (reason := _refusal(address))]
    if len(reasons) == len(match["masters"].split(",")):
        raise NotReady(
            f"no Spark master answers at {master}: {reasons[0]}",
            "start the cluster ('millstream up --workers 2' starts a local one), or name another master",
        )


@contextlib.contextmanager
def explain_refusal(master: str) -> Iterator[None]:
    """Raise NotReady if Spark has stopped while the session of a standalone cluster was created within this context.

    Spark says so as an error of whatever came next, once no master has registered the application for a minute, or
    once ten executors have failed to start.
    """
    try:
        yield
    except Exception as error:
        # Py4J's error has no class of its own for it.
        if not _STANDALONE.fullmatch(master) or not _STOPPED.search(str(error)):
            raise
        raise NotReady(
            f"the cluster {master} refused this application, or its executors did not start",
            "compare spark.authenticate and its secret with the cluster's, and Spark's version; the logs of master"
            " and workers say which",
        ) from error


def _refusal(address: str) -> str:
    """Return why a master cannot be reached, or an empty text."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host or address, int(port or _PORT)), _PATIENCE):
            return ""
    except (OSError, ValueError) as error:
        return str(error.strerror if isinstance(error, OSError) and error.strerror else error)
