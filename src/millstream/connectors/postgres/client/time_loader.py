"""Load times of Postgres that Python does not have, such as `infinity`, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import Loader
from psycopg.pq import Format

if TYPE_CHECKING:
    from psycopg.abc import AdaptContext, Buffer

# Beyond the years 1 to 9999 of Python; the time of day 24:00; an interval of more than a billion days.
_TYPES = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")


class TimeLoader(Loader):
    """Loads a time as psycopg does, or the server's text of one that Python cannot represent."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        loader = psycopg.adapters.get_loader(oid, Format.TEXT)
        assert loader is not None, "psycopg loads each of these types"
        self._loader = loader(oid, context)

    def load(self, data: Buffer) -> Any:
        """Return a time or a text."""
        try:
            return self._loader.load(data)
        except psycopg.DataError:
            return bytes(data).decode()


def load_every_time(connection: psycopg.Connection[Any]) -> None:
    """Let queries of this connection return every time, for rows that are only shown."""
    for name in _TYPES:
        connection.adapters.register_loader(name, TimeLoader)
