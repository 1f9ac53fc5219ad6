"""Rows that go to Postgres from Spark's tasks, into a table of the batch's own that its transaction takes over."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow
from psycopg.sql import SQL, Composed, Identifier, Literal

from millstream.connectors.postgres.connect import dial
from millstream.connectors.postgres.errors import explain
from millstream.connectors.postgres.rows import Wired, sent
from millstream.diagnostics.failure import MillstreamError, Outage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection
    from pyspark.sql import DataFrame

    from millstream.connectors.postgres.address import Address

# A task that is run twice leaves its rows twice; each carries the number of its attempt, and one attempt counts.
_ATTEMPT = "millstream_attempt"
_SETTING = "millstream.attempt"
_FAILURES = {kind.__name__: kind for kind in (MillstreamError, Outage)}


@dataclass
class Staging:
    """A table without a log that the tasks of one batch copy into, each over a connection of its own.

    It does not outlive a crash of the server, and need not: the batch is then run again.
    """

    address: Address
    schema: str
    name: str
    columns: tuple[Wired, ...]
    count: int = 0
    attempts: list[int] = field(default_factory=list)

    @property
    def identifier(self) -> Identifier:
        """Its name, quoted."""
        return Identifier(self.schema, self.name)

    def fill(self, connection: Connection[Any], frame: DataFrame) -> None:
        """Make the table and have every partition of the batch copied into it.

        Raises what the batch itself raises, and what Postgres refused a task in one sentence.
        """
        columns = [SQL("{} {}").format(Identifier(one.name), SQL(one.wire)) for one in self.columns]
        connection.execute(SQL("DROP TABLE IF EXISTS {}").format(self.identifier))
        connection.execute(
            SQL("CREATE UNLOGGED TABLE {} ({}, {} bigint DEFAULT current_setting({})::bigint)").format(
                self.identifier, SQL(", ").join(columns), Identifier(_ATTEMPT), Literal(_SETTING)
            )
        )
        names = SQL(", ").join([Identifier(one.name) for one in self.columns])
        copy = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(self.identifier, names)
        # An Address hides its password from whoever writes it down, and so from pickle too.
        put = partial(_put, dict(self.address.arguments()), self.address.shown, copy.as_string())
        rows = frame.selectExpr(*(one.sql for one in self.columns))
        told = rows.mapInArrow(put, "attempt LONG, rows LONG, kind STRING, what STRING, fix STRING").collect()
        for row in told:
            if row.kind is not None:
                raise _FAILURES[row.kind](row.what, row.fix)
        self.attempts = [row.attempt for row in told if row.rows]
        self.count = sum(row.rows for row in told)

    def chosen(self) -> Composed:
        """The condition that leaves the rows of the attempts that count."""
        return SQL("{} = ANY({})").format(Identifier(_ATTEMPT), Literal(self.attempts))

    def check(self, connection: Connection[Any]) -> None:
        """Raises `Outage` when rows are missing: a server that crashed comes back with the table empty."""
        query = SQL("SELECT count(*) FROM {} WHERE {}").format(self.identifier, self.chosen())
        row = connection.execute(query).fetchone()
        if row is None or row[0] != self.count:
            raise Outage(
                f"the rows that were staged in {self.schema}.{self.name} are gone", "the batch is run again"
            )

    def drop(self, connection: Connection[Any]) -> None:
        """Remove it, in the transaction that is open."""
        connection.execute(SQL("DROP TABLE {}").format(self.identifier))


def leftovers(connection: Connection[Any], schema: str, prefix: str) -> None:
    """Remove what earlier starts of this writer staged and never took over."""
    found = connection.execute(
        "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)",
        (schema, prefix),
    ).fetchall()
    for (name,) in found:
        connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(schema, name)))


def _put(address: dict[str, Any], shown: str, copy: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Runs in a task: copy one partition, in one transaction, and tell how many rows of which attempt it was."""
    # Drawn here, in the task: an attempt that is made again draws another.
    attempt = secrets.randbits(62)
    rows, kind, what, fix = 0, None, None, None
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is not None:
        try:
            with dial(address, shown, "millstream task") as connection, connection.transaction():
                connection.execute("SELECT set_config(%s, %s, true)", (_SETTING, str(attempt)))
                with connection.cursor() as cursor, cursor.copy(copy.encode()) as into:
                    rows = sent(into, _chain(first, batches))
        except psycopg.Error as error:
            refused = explain(error, shown)
            kind, what, fix = _kind(refused), refused.what, refused.fix
        except MillstreamError as error:
            kind, what, fix = _kind(error), error.what, error.fix
    told = {"attempt": [attempt], "rows": [rows], "kind": [kind], "what": [what], "fix": [fix]}
    text = pyarrow.string()
    types = [pyarrow.int64(), pyarrow.int64(), text, text, text]
    yield pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(values, kind) for values, kind in zip(told.values(), types, strict=True)],
        names=list(told),
    )


def _kind(error: MillstreamError) -> str:
    return "Outage" if isinstance(error, Outage) else "MillstreamError"


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
