"""Stage rows from Spark's tasks in a Postgres table of the batch, from which its transaction moves them."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow
from psycopg.sql import SQL, Composed, Identifier, Literal

from millstream.connectors.postgres.client.connection import LOCK_LIMIT, connect_with
from millstream.connectors.postgres.client.errors import explain
from millstream.connectors.postgres.copy.rows import CopyColumn, send_batches
from millstream.diagnostics.failure import MillstreamError, Outage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection
    from pyspark.sql import DataFrame

    from millstream.connectors.postgres.client.address import Address

# A task that runs twice leaves its rows twice. Each row has the number of its attempt, and one attempt counts.
_ATTEMPT = "millstream_attempt"
_SETTING = "millstream.attempt"
_FAILURES = {kind.__name__: kind for kind in (MillstreamError, Outage)}
# Leftover tables are dropped while the other queries of a run wait for their start.
_LEFTOVER_LIMIT = SQL("SET LOCAL lock_timeout = '1s'")


@dataclass
class Staging:
    """An unlogged table that the tasks of one batch copy into, each over its own connection.

    It does not survive a crash of the server, and need not, because the batch is then repeated.
    """

    address: Address
    schema: str
    name: str
    columns: tuple[CopyColumn, ...]
    count: int = 0
    attempts: list[int] = field(default_factory=list)

    @property
    def identifier(self) -> Identifier:
        """Quoted name of the table."""
        return Identifier(self.schema, self.name)

    def fill(self, connection: Connection[Any], frame: DataFrame) -> None:
        """Create the table, and copy every partition of the batch into it.

        Raises the errors of the batch itself, and the errors of Postgres in a task as one sentence.
        """
        columns = [SQL("{} {}").format(Identifier(column.name), SQL(column.wire)) for column in self.columns]
        with connection.transaction():
            # A task of an earlier attempt at the batch may still have a lock on the table.
            connection.execute(LOCK_LIMIT)
            connection.execute(SQL("DROP TABLE IF EXISTS {}").format(self.identifier))
            connection.execute(
                SQL("CREATE UNLOGGED TABLE {} ({}, {} bigint DEFAULT current_setting({})::bigint)").format(
                    self.identifier, SQL(", ").join(columns), Identifier(_ATTEMPT), Literal(_SETTING)
                )
            )
        names = SQL(", ").join([Identifier(column.name) for column in self.columns])
        copy = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(self.identifier, names)
        # An Address hides its password when it is printed, and therefore also from pickle.
        copy_task = partial(
            _copy_partition, dict(self.address.arguments()), self.address.label, copy.as_string()
        )
        rows = frame.selectExpr(*(column.sql for column in self.columns))
        results = rows.mapInArrow(
            copy_task, "attempt LONG, rows LONG, kind STRING, what STRING, fix STRING"
        ).collect()
        for row in results:
            if row.kind is not None:
                raise _FAILURES[row.kind](row.what, row.fix)
        self.attempts = [row.attempt for row in results if row.rows]
        self.count = sum(row.rows for row in results)

    def chosen(self) -> Composed:
        """Return the condition for the rows of the attempts that count."""
        return SQL("{} = ANY({})").format(Identifier(_ATTEMPT), Literal(self.attempts))

    def check(self, connection: Connection[Any]) -> None:
        """Raise `Outage` if rows are missing: after a crash of the server the table is empty."""
        query = SQL("SELECT count(*) FROM {} WHERE {}").format(self.identifier, self.chosen())
        row = connection.execute(query).fetchone()
        if row is None or row[0] != self.count:
            raise Outage(
                f"the rows in the staging table {self.schema}.{self.name} are lost",
                "nothing to do: Spark repeats the batch",
            )

    def drop(self, connection: Connection[Any]) -> None:
        """Drop the table in the open transaction."""
        connection.execute(SQL("DROP TABLE {}").format(self.identifier))


def drop_leftover_tables(connection: Connection[Any], schema: str, prefix: str) -> None:
    """Drop tables that earlier starts of this writer staged but never used.

    A table that a task on a vanished machine has locked is left for a later start.
    """
    tables = connection.execute(
        "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relkind = 'r' AND starts_with(c.relname, %s)",
        (schema, prefix),
    ).fetchall()
    for (name,) in tables:
        with suppress(psycopg.errors.LockNotAvailable), connection.transaction():
            connection.execute(_LEFTOVER_LIMIT)
            connection.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(schema, name)))


def _copy_partition(address: dict[str, Any], label: str, copy: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Copy one partition in one transaction, in a task, and return its attempt and number of rows."""
    # Drawn in the task, so that a repeated attempt draws another number.
    attempt = secrets.randbits(62)
    rows, kind, message, fix = 0, None, None, None
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is not None:
        try:
            with connect_with(address, label, "millstream task") as connection, connection.transaction():
                connection.execute("SELECT set_config(%s, %s, true)", (_SETTING, str(attempt)))
                with connection.cursor() as cursor, cursor.copy(copy.encode()) as target:
                    rows = send_batches(target, _chain(first, batches))
        except psycopg.Error as error:
            explained = explain(error, label)
            kind, message, fix = _failure_kind(explained), explained.what, explained.fix
        except MillstreamError as error:
            kind, message, fix = _failure_kind(error), error.what, error.fix
    result = {"attempt": [attempt], "rows": [rows], "kind": [kind], "what": [message], "fix": [fix]}
    text = pyarrow.string()
    types = [pyarrow.int64(), pyarrow.int64(), text, text, text]
    yield pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(values, kind) for values, kind in zip(result.values(), types, strict=True)],
        names=list(result),
    )


def _failure_kind(error: MillstreamError) -> str:
    return "Outage" if isinstance(error, Outage) else "MillstreamError"


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
