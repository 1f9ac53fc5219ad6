"""One local stack for all examples, and nothing of one example in it when the next begins."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg
from confluent_kafka import KafkaException
from psycopg import sql

from millstream.devstack import stack
from millstream.devstack.servers import topics
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SECONDS = 15.0
_LOOK = 0.05


@dataclass(frozen=True)
class Stage:
    """A running broker and database: `kafka` HOST:PORT, `postgres` a URL with its password."""

    kafka: str
    postgres: str

    @contextmanager
    def room(self, name: str) -> Iterator[Stage]:
        """The stage with no topic on it, and with an empty database of that name."""
        self._sweep()
        with psycopg.connect(self.postgres, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield Stage(self.kafka, urlunsplit(urlsplit(self.postgres)._replace(path=f"/{name}")))

    def _sweep(self) -> None:
        """Delete all topics but the broker's own. Raises NotReady when one is still there a while later."""
        client = topics.admin_client(self.kafka)
        left = self._topics()
        if left:
            for name, missing in client.delete_topics(left).items():
                try:
                    missing.result(_SECONDS)
                except KafkaException as error:
                    raise NotReady(f"the broker keeps '{name}': {error}", "start again") from error
        until = time.monotonic() + _SECONDS
        while left := self._topics():
            if time.monotonic() > until:
                raise NotReady(f"the broker still has {', '.join(left)}", "start again")
            time.sleep(_LOOK)

    def _topics(self) -> list[str]:
        return [name for name in topics.partition_counts(self.kafka) if not name.startswith("__")]


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """A stack in that folder, which ends with the block and with this process."""
    endpoints = stack.up(folder, attached=True)
    try:
        yield Stage(endpoints.kafka, endpoints.postgres)
    finally:
        stack.down(folder)
