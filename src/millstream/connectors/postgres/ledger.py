"""The ledger: which batches a writer has committed, kept in the database they were written to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.sql import SQL, Composed, Identifier

from millstream.connectors.remembered import Entry, Note, noted
from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from psycopg import Connection

    from millstream.connectors.sink import SinkIdentity

# Spark keeps the last 100 batches of a checkpoint (minBatchesToRetain); a ledger ten times
# as long answers for any batch that can come again. The greatest number is never deleted.
KEPT = 1000
TRIM_EVERY = 100

# Whoever makes tables takes this lock first: two queries starting together would both find no table.
MAKING = SQL("SELECT pg_advisory_xact_lock(hashtext('millstream: make tables'))")

_TABLES = """
CREATE TABLE IF NOT EXISTS {fence} (
  writer text PRIMARY KEY,
  epoch bigint NOT NULL,
  pipeline text NOT NULL,
  query text NOT NULL,
  claimed_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS {ledger} (
  writer text NOT NULL,
  batch_id bigint NOT NULL,
  epoch bigint NOT NULL,
  target text NOT NULL,
  rows bigint NOT NULL,
  committed_at timestamptz NOT NULL DEFAULT now(),
  note jsonb,
  PRIMARY KEY (writer, batch_id)
);
"""
# Where each source ended and what the rows add up to. A ledger of an older version has no such column.
_NOTE = "SET LOCAL lock_timeout = '10s'; ALTER TABLE {ledger} ADD COLUMN IF NOT EXISTS note jsonb"
# Pipeline and query of a writer stand at the fence, once. Asked before the column of notes is added.
_ENTRIES = """
SELECT DISTINCT ON (l.writer) l.writer, l.batch_id,
  (extract(epoch FROM l.committed_at) * 1000)::bigint, to_jsonb(l) -> 'note'
FROM {ledger} AS l JOIN {fence} AS f USING (writer)
WHERE f.pipeline = %s AND f.query = %s AND l.target = %s
ORDER BY l.writer, l.batch_id DESC
"""


@dataclass(frozen=True)
class Ledger:
    """Two tables in `schema`: `fence` says whose turn it is, `ledger` which batches are written."""

    schema: str
    identity: SinkIdentity

    def _sql(self, text: str) -> Composed:
        return SQL(text).format(
            schema=Identifier(self.schema),
            fence=Identifier(self.schema, "fence"),
            ledger=Identifier(self.schema, "ledger"),
        )

    def make(self, connection: Connection[Any]) -> None:
        """Make schema and tables where they are missing; asks for no right when they are there."""
        if self.exists(connection):
            self._migrate(connection)
            return
        with connection.transaction():
            connection.execute(MAKING)
            if not _one(connection, SQL("SELECT to_regnamespace(%s) IS NOT NULL"), _quoted(self.schema)):
                connection.execute(self._sql("CREATE SCHEMA {schema}"))
            connection.execute(self._sql(_TABLES))

    def _migrate(self, connection: Connection[Any]) -> None:
        """Give a ledger of an older version the column of notes; asks for no right when it has it."""
        query = SQL(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(%s)"
            " AND attname = 'note' AND NOT attisdropped)"
        )
        if not _one(connection, query, f"{_quoted(self.schema)}.ledger"):
            with connection.transaction():
                connection.execute(self._sql(_NOTE))

    def exists(self, connection: Connection[Any]) -> bool:
        """Are both tables there?"""
        names = [f"{_quoted(self.schema)}.{table}" for table in ("fence", "ledger")]
        return bool(
            _one(
                connection, SQL("SELECT to_regclass(%s) IS NOT NULL AND to_regclass(%s) IS NOT NULL"), *names
            )
        )

    def claim(self, connection: Connection[Any]) -> int:
        """Take the next epoch; from here on an older run of the same query is turned away.

        Waits for an older run's open transaction, at most the connection's lock timeout.
        """
        claim = self._sql(
            "INSERT INTO {fence} AS held (writer, epoch, pipeline, query) VALUES (%s, 1, %s, %s)"
            " ON CONFLICT (writer) DO UPDATE SET epoch = held.epoch + 1, claimed_at = now() RETURNING epoch"
        )
        return int(_one(connection, claim, self.identity.key, self.identity.pipeline, self.identity.query))

    def enter(self, connection: Connection[Any], epoch: int) -> None:
        """Lock the fence for this transaction. Raises `CannotGoOn` when a later run has claimed it."""
        held = _one(
            connection, self._sql("SELECT epoch FROM {fence} WHERE writer = %s FOR UPDATE"), self.identity.key
        )
        if held != epoch:
            raise CannotGoOn(
                f"a later start of query '{self.identity.query}' has taken over its writes to Postgres",
                "stop this run and keep the other; two runs of one query never both write",
            )

    def last(self, connection: Connection[Any]) -> int | None:
        """The greatest batch this writer has committed, or None."""
        found = _one(
            connection, self._sql("SELECT max(batch_id) FROM {ledger} WHERE writer = %s"), self.identity.key
        )
        return None if found is None else int(found)

    def entries(self, connection: Connection[Any], target: str) -> tuple[Entry, ...]:
        """The newest batch of each writer of this query in that table; none before there is a ledger."""
        if not self.exists(connection):
            return ()
        names = (self.identity.pipeline, self.identity.query, target)
        found = connection.execute(self._sql(_ENTRIES), names).fetchall()
        return tuple(Entry(writer, batch, at, noted(said or {})) for writer, batch, at, said in found)

    def entry(self, connection: Connection[Any], batch_id: int) -> Entry | None:
        """What stands there of one batch of this writer; None where it is no longer kept."""
        query = self._sql(
            "SELECT (extract(epoch FROM committed_at) * 1000)::bigint, note FROM {ledger}"
            " WHERE writer = %s AND batch_id = %s"
        )
        row = connection.execute(query, (self.identity.key, batch_id)).fetchone()
        return None if row is None else Entry(self.identity.key, batch_id, row[0], noted(row[1] or {}))

    def record(
        self, connection: Connection[Any], batch_id: int, epoch: int, target: str, rows: int, note: Note
    ) -> bool:
        """Enter a batch in the open transaction; False when it stands there already."""
        enter = self._sql(
            "INSERT INTO {ledger} (writer, batch_id, epoch, target, rows, note) VALUES (%s, %s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING RETURNING 1"
        )
        values = (self.identity.key, batch_id, epoch, target, rows, json.dumps(note.plain()))
        entered = _one(connection, enter, *values) is not None
        if entered and batch_id % TRIM_EVERY == 0:
            trim = self._sql("DELETE FROM {ledger} WHERE writer = %s AND batch_id < %s")
            connection.execute(trim, (self.identity.key, batch_id - KEPT))
        return entered


def _quoted(name: str) -> str:
    """A name as `to_regclass` reads it: quoted, so that upper case counts. Names are validated before."""
    return f'"{name}"'


def _one(connection: Connection[Any], query: SQL | Composed, *values: object) -> Any:
    """The first column of the first row, or None."""
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]
