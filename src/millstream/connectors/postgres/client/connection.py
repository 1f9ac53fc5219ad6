"""Open connections to Postgres that detect a dead server and never wait without limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL

from millstream.connectors.postgres.client.errors import explain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.postgres.client.address import Address

# A server that disappeared is detected after about a minute instead of two hours.
_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}

# A machine that is gone keeps the locks of its open transaction until the server notices, by default after two hours.
LOCK_LIMIT = SQL("SET LOCAL lock_timeout = '10s'")
"""First statement of a transaction that may wait for a lock of another session."""


def connect(address: Address, name: str) -> psycopg.Connection[Any]:
    """Open a connection in autocommit with application name `name`; raises `NotReady` or `Outage`.

    Statements are not prepared on the server, so that a connection pooler can be used.
    """
    return connect_with(address.arguments(), address.label, name)


def connect_with(address: Mapping[str, Any], label: str, name: str) -> psycopg.Connection[Any]:
    """Open a connection as `connect` does, with libpq parameters, for a task that gets no `Secret`."""
    arguments: dict[str, Any] = {"application_name": name[:63], **_ALIVE, **address}
    try:
        return psycopg.connect(autocommit=True, prepare_threshold=None, **arguments)
    except psycopg.Error as error:
        raise explain(error, label) from error
