"""Opens connections to Postgres that notice a dead server and never wait without end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from millstream.connectors.postgres.errors import explain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.postgres.address import Address

# A server that vanished without a word is noticed after about a minute instead of two hours.
_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}


def connect(address: Address, name: str) -> psycopg.Connection[Any]:
    """A connection in autocommit, shown to the server's owner as `name`; raises `NotReady` or `Outage`.

    Statements are not prepared on the server, so that a pooler may stand between.
    """
    return dial(address.arguments(), address.shown, name)


def dial(address: Mapping[str, Any], shown: str, name: str) -> psycopg.Connection[Any]:
    """As `connect`, by libpq's own words: what a task is given, where a secret would not travel."""
    arguments: dict[str, Any] = {"application_name": name[:63], **_ALIVE, **address}
    try:
        return psycopg.connect(autocommit=True, prepare_threshold=None, **arguments)
    except psycopg.Error as error:
        raise explain(error, shown) from error
