"""Dead letters in a Postgres table, with the batch id in the transaction of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.api.dead_letters import DeadLetter, DeadLetterStore, DeadLetterWriter, Group
from millstream.connectors.postgres.sink import PostgresSink
from millstream.spec.output_mode import OutputMode
from millstream.spec.secrets.secret import Secret, SecretUrl

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from millstream.connectors.api.values.problem import Problem
    from millstream.connectors.api.writer import SinkIdentity


class PostgresDeadLetterStore(DeadLetterStore):
    """A PostgreSQL table with one row per dead letter."""

    kind = "postgres"
    main = "table"

    url: SecretUrl = Field(examples=["${POSTGRES_URL}"])
    """Database as `postgresql://user:password@host:port/database?sslmode=require`."""
    user: str | None = None
    """Role to connect as, if the url contains none."""
    password: Secret | None = None
    """Password of the role, if the url contains none."""
    table: str = Field(default="dead_letters", examples=["dead_letters", "ops.dead_letters"])
    """Table, with its schema unless it is in `public`; created if missing."""
    ledger_schema: str = "millstream"
    """Schema of the batch ledger. The role must own it or be allowed to create it."""

    def sink(self) -> PostgresSink:
        """Return the sink that writes the dead letters as rows."""
        return PostgresSink(**{name: getattr(self, name) for name in type(self).model_fields})

    def keeper(self, identity: SinkIdentity) -> DeadLetterWriter:
        """Create a writer that uses the sink's writer."""
        from millstream.connectors.postgres.dead_letter_writer import PostgresDeadLetterWriter  # noqa: PLC0415 - loads psycopg

        return PostgresDeadLetterWriter(self.sink(), identity)

    def all(self) -> Iterator[DeadLetter]:
        """Read the table's rows with a server-side cursor."""
        from millstream.connectors.postgres.dead_letter_table import read_rows  # noqa: PLC0415 - as above

        return read_rows(self.sink())

    def latest(self, limit: int, sources: Sequence[str] = ()) -> list[DeadLetter]:
        """Let the server sort, and read only these rows."""
        from millstream.connectors.postgres.dead_letter_table import read_latest  # noqa: PLC0415 - as above

        return read_latest(self.sink(), limit, sources)

    def counts(self, before: datetime | None = None) -> Counter[Group]:
        """Let the server count."""
        from millstream.connectors.postgres.dead_letter_table import count_by_group  # noqa: PLC0415 - as above

        return count_by_group(self.sink(), before)

    def purge(self, before: datetime | None, source: str | None) -> int:
        """Delete rows; the ledger keeps their batch ids."""
        from millstream.connectors.postgres.dead_letter_table import purge  # noqa: PLC0415 - as above

        purge(self.sink(), before, source)
        return 0

    def delete_sent(self, source: str, written: Mapping[str, Collection[datetime]]) -> int:
        """Delete rows; the ledger keeps their batch ids."""
        from millstream.connectors.postgres.dead_letter_table import delete_sent  # noqa: PLC0415 - as above

        delete_sent(self.sink(), source, written)
        return 0

    def target(self) -> str:
        """Return the table."""
        return self.table

    def problems(self) -> list[Problem]:
        """Check the address and the names."""
        return self.sink().problems(OutputMode.APPEND)

    def probe(self) -> None:
        """Raise `NotReady` if the server, the role or the table would reject the first dead letter."""
        self.sink().probe()
