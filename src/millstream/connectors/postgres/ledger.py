"""Batch ledger in the database of the rows: the batches that each writer has committed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.sql import SQL, Composed, Identifier

from millstream.connectors.api.batch_ledger import BatchMetadata, LedgerEntry, parse_metadata
from millstream.connectors.postgres.client.identifiers import table_spellings
from millstream.diagnostics.failure import CheckpointError, Outage

if TYPE_CHECKING:
    from psycopg import Connection

    from millstream.connectors.api.writer import SinkIdentity

# Spark keeps the last 100 batches of a checkpoint (minBatchesToRetain). A ledger ten times as long covers any batch
# that can be repeated. The greatest number is never deleted.
KEPT = 1000
TRIM_EVERY = 100

# Taken before creating tables, because two queries that start together would both find none.
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
# Where each source ended, and the checksum of the rows. Ledgers of older versions have no such column.
_NOTE = "SET LOCAL lock_timeout = '10s'; ALTER TABLE {ledger} ADD COLUMN IF NOT EXISTS note jsonb"
# The fence has pipeline and query of each writer. This query also works before the column `note` is added.
_ENTRIES = """
SELECT DISTINCT ON (l.writer) l.writer, l.batch_id,
  (extract(epoch FROM l.committed_at) * 1000)::bigint, to_jsonb(l) -> 'note'
FROM {ledger} AS l JOIN {fence} AS f USING (writer)
WHERE l.writer = %s OR (f.pipeline = %s AND f.query = %s AND l.target = ANY(%s))
ORDER BY l.writer, l.batch_id DESC
"""


@dataclass(frozen=True)
class Ledger:
    """Two tables in `schema`: `fence` has the current epoch of each writer, `ledger` its written batches."""

    schema: str
    identity: SinkIdentity

    def _sql(self, text: str) -> Composed:
        return SQL(text).format(
            schema=Identifier(self.schema),
            fence=Identifier(self.schema, "fence"),
            ledger=Identifier(self.schema, "ledger"),
        )

    def make(self, connection: Connection[Any]) -> None:
        """Create missing schema and tables; needs no permission if they exist."""
        if self.exists(connection):
            self._migrate(connection)
            return
        with connection.transaction():
            connection.execute(MAKING)
            if not _fetch_value(
                connection, SQL("SELECT to_regnamespace(%s) IS NOT NULL"), _quoted(self.schema)
            ):
                connection.execute(self._sql("CREATE SCHEMA {schema}"))
            connection.execute(self._sql(_TABLES))

    def _migrate(self, connection: Connection[Any]) -> None:
        """Add the column `note` to a ledger of an older version; needs no permission if it exists."""
        query = SQL(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(%s)"
            " AND attname = 'note' AND NOT attisdropped)"
        )
        if not _fetch_value(connection, query, f"{_quoted(self.schema)}.ledger"):
            with connection.transaction():
                connection.execute(self._sql(_NOTE))

    def exists(self, connection: Connection[Any]) -> bool:
        """Return whether both tables exist."""
        names = [f"{_quoted(self.schema)}.{table}" for table in ("fence", "ledger")]
        return bool(
            _fetch_value(
                connection, SQL("SELECT to_regclass(%s) IS NOT NULL AND to_regclass(%s) IS NOT NULL"), *names
            )
        )

    def claim(self, connection: Connection[Any]) -> int:
        """Claim the next epoch, so that an older run of the same query is rejected from then on.

        Waits for an older run's open transaction, at most for the connection's lock timeout.
        """
        claim = self._sql(
            "INSERT INTO {fence} AS held (writer, epoch, pipeline, query) VALUES (%s, 1, %s, %s)"
            " ON CONFLICT (writer) DO UPDATE SET epoch = held.epoch + 1, claimed_at = now(),"
            " pipeline = excluded.pipeline, query = excluded.query RETURNING epoch"
        )
        return int(
            _fetch_value(connection, claim, self.identity.key, self.identity.pipeline, self.identity.query)
        )

    def enter(self, connection: Connection[Any], epoch: int) -> None:
        """Lock the fence for this transaction. Raises `CheckpointError` if a later run has claimed it."""
        current_epoch = _fetch_value(
            connection, self._sql("SELECT epoch FROM {fence} WHERE writer = %s FOR UPDATE"), self.identity.key
        )
        if current_epoch != epoch:
            raise CheckpointError(
                f"a newer run of query '{self.identity.query}' has taken over its writes to Postgres",
                "stop this run and keep the newer one; two runs of a query must not both write",
            )

    def forget(self, connection: Connection[Any], target: str) -> None:
        """Delete the batches of every writer to a table that is being created: it has the rows of none."""
        connection.execute(
            self._sql("DELETE FROM {ledger} WHERE target = ANY(%s)"), (table_spellings(target),)
        )

    def last(self, connection: Connection[Any], written: int | None = None) -> int | None:
        """Return the greatest batch that this writer has committed, or None.

        Raises `Outage` if it is less than `written`, so that the query starts again, which compares its checkpoint
        with the ledger.
        """
        batch = _fetch_value(
            connection, self._sql("SELECT max(batch_id) FROM {ledger} WHERE writer = %s"), self.identity.key
        )
        last = None if batch is None else int(batch)
        if written is not None and (last is None or last < written):
            raise Outage(
                f"the database no longer has batch {written} of query '{self.identity.query}', which this run has "
                "written",
                "restore the latest data: another server may have taken over without it",
            )
        return last

    def entries(self, connection: Connection[Any], target: str) -> tuple[LedgerEntry, ...]:
        """Return the newest batch of each writer of this query to the table; nothing if there is no ledger."""
        if not self.exists(connection):
            return ()
        # This writer's own entry counts even if its query had another name.
        names = (self.identity.key, self.identity.pipeline, self.identity.query, table_spellings(target))
        rows = connection.execute(self._sql(_ENTRIES), names).fetchall()
        return tuple(
            LedgerEntry(writer, batch, committed_at, parse_metadata(note or {}))
            for writer, batch, committed_at, note in rows
        )

    def entry(self, connection: Connection[Any], batch_id: int) -> LedgerEntry | None:
        """Return the entry of one batch of this writer; None if it was trimmed."""
        query = self._sql(
            "SELECT (extract(epoch FROM committed_at) * 1000)::bigint, note FROM {ledger}"
            " WHERE writer = %s AND batch_id = %s"
        )
        row = connection.execute(query, (self.identity.key, batch_id)).fetchone()
        return (
            None
            if row is None
            else LedgerEntry(self.identity.key, batch_id, row[0], parse_metadata(row[1] or {}))
        )

    def record(
        self,
        connection: Connection[Any],
        batch_id: int,
        epoch: int,
        target: str,
        rows: int,
        note: BatchMetadata,
    ) -> bool:
        """Record a batch in the open transaction; return False if it was already recorded."""
        enter = self._sql(
            "INSERT INTO {ledger} (writer, batch_id, epoch, target, rows, note) VALUES (%s, %s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING RETURNING 1"
        )
        values = (self.identity.key, batch_id, epoch, target, rows, json.dumps(note.plain()))
        entered = _fetch_value(connection, enter, *values) is not None
        if entered and batch_id % TRIM_EVERY == 0:
            trim = self._sql("DELETE FROM {ledger} WHERE writer = %s AND batch_id < %s")
            connection.execute(trim, (self.identity.key, batch_id - KEPT))
        return entered


def _quoted(name: str) -> str:
    """Quote a validated name for `to_regclass`, to keep its case."""
    return f'"{name}"'


def _fetch_value(connection: Connection[Any], query: SQL | Composed, *values: object) -> Any:
    """Return the first column of the first row, or None."""
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]
