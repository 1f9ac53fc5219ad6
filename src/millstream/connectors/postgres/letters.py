"""Dead letters in a Postgres table: rows and the batch's number in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.letters import Box, Keeper, Letter
from millstream.connectors.postgres.sink import PostgresSink
from millstream.spec.mode import OutputMode
from millstream.spec.secret import Secret, SecretUrl

if TYPE_CHECKING:
    from datetime import datetime

    from millstream.connectors.sink import SinkIdentity
    from millstream.connectors.source import Problem


class PostgresBox(Box):
    """A table of a PostgreSQL database, a row a letter."""

    kind = "postgres"
    main = "table"

    url: SecretUrl = Field(examples=["${POSTGRES_URL}"])
    """The database as `postgresql://user:password@host:port/database?sslmode=require`."""
    user: str | None = None
    """The role to connect as, when the url does not say."""
    password: Secret | None = None
    """Its password, when the url does not carry it."""
    table: str = Field(default="dead_letters", examples=["dead_letters", "ops.dead_letters"])
    """The table, with its schema if it is not in `public`; made when it is missing."""
    ledger_schema: str = "millstream"
    """The schema in which the numbers of written batches are kept; the role must own it or may create it."""

    def sink(self) -> PostgresSink:
        """The sink that writes the table: letters are rows like any others."""
        return PostgresSink(**{name: getattr(self, name) for name in type(self).model_fields})

    def keeper(self, identity: SinkIdentity) -> Keeper:
        """Writes through the sink's own writer."""
        from millstream.connectors.postgres.keeping import PostgresKeeper  # noqa: PLC0415 - loads psycopg

        return PostgresKeeper(self.sink(), identity)

    def all(self) -> list[Letter]:
        """The table's rows."""
        from millstream.connectors.postgres.keeping import kept  # noqa: PLC0415 - as above

        return kept(self.sink())

    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete rows; the ledger keeps the numbers of their batches."""
        from millstream.connectors.postgres.keeping import purge  # noqa: PLC0415 - as above

        purge(self.sink(), before, source)
        return 0

    def target(self) -> str:
        """The table."""
        return self.table

    def problems(self) -> list[Problem]:
        """An address that cannot be one, names that Postgres would not take."""
        return self.sink().problems(OutputMode.APPEND)

    def probe(self) -> None:
        """Raises `NotReady` when the server, the role or the table would refuse the first letter."""
        self.sink().probe()
