"""Batch ledger in the database of the rows, and the fence that keeps an older run of a query from writing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.connectors.api.batch_ledger import BatchMetadata, LedgerEntry, parse_metadata
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from millstream.connectors.api.writer import SinkIdentity

# Spark keeps the last 100 batches of a checkpoint (minBatchesToRetain); a ledger ten times as long covers them.
KEPT = 1000

_TABLES = """
CREATE SCHEMA IF NOT EXISTS millstream;
CREATE TABLE IF NOT EXISTS millstream.fence (
  writer VARCHAR PRIMARY KEY, epoch BIGINT NOT NULL, pipeline VARCHAR NOT NULL, query VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS millstream.ledger (
  writer VARCHAR, batch_id BIGINT, target VARCHAR NOT NULL, rows BIGINT NOT NULL,
  committed_at BIGINT NOT NULL, note VARCHAR NOT NULL, PRIMARY KEY (writer, batch_id));
"""
_CLAIM = """
INSERT INTO millstream.fence VALUES (?, 1, ?, ?)
ON CONFLICT (writer) DO UPDATE SET epoch = epoch + 1, pipeline = excluded.pipeline, query = excluded.query
RETURNING epoch
"""
_ENTRIES = """
SELECT l.writer, max(l.batch_id), arg_max(l.committed_at, l.batch_id), arg_max(l.note, l.batch_id)
FROM millstream.ledger AS l JOIN millstream.fence AS f USING (writer)
WHERE l.writer = $1 OR (f.pipeline = $2 AND f.query = $3 AND l.target = $4)
GROUP BY l.writer ORDER BY l.writer
"""


@dataclass(frozen=True)
class DuckdbLedger:
    """Tables `fence` and `ledger` of schema `millstream`: the epoch of each writer, and the batches it wrote."""

    identity: SinkIdentity
    target: str

    def create(self, connection: DuckDBPyConnection) -> None:
        """Create missing tables."""
        connection.execute(_TABLES)

    def claim(self, connection: DuckDBPyConnection) -> int:
        """Claim the next epoch, so that an older run of the same query is rejected from then on."""
        values = (self.identity.key, self.identity.pipeline, self.identity.query)
        (row,) = connection.execute(_CLAIM, values).fetchall()
        return int(row[0])

    def forget(self, connection: DuckDBPyConnection) -> None:
        """Delete the batches of every writer to a table that is being created: it has the rows of none."""
        connection.execute("DELETE FROM millstream.ledger WHERE target = ?", (self.target,))

    def require_epoch(self, connection: DuckDBPyConnection, epoch: int) -> None:
        """Raise `CheckpointError` if a later run has claimed the writer."""
        query = "SELECT epoch FROM millstream.fence WHERE writer = ?"
        if connection.execute(query, (self.identity.key,)).fetchall() != [(epoch,)]:
            raise CheckpointError(
                f"a newer run of query '{self.identity.query}' has taken over its writes to DuckDB",
                "stop this run and keep the newer one; two runs of a query must not both write",
            )

    def last_batch(self, connection: DuckDBPyConnection) -> int | None:
        """Return the greatest batch of this writer, or None."""
        query = "SELECT max(batch_id) FROM millstream.ledger WHERE writer = ?"
        (row,) = connection.execute(query, (self.identity.key,)).fetchall()
        return None if row[0] is None else int(row[0])

    def record(self, connection: DuckDBPyConnection, batch_id: int, rows: int, note: BatchMetadata) -> None:
        """Record a batch in the open transaction, and forget very old ones."""
        connection.execute(
            "INSERT INTO millstream.ledger VALUES (?, ?, ?, ?, epoch_ms(now()), ?)",
            (self.identity.key, batch_id, self.target, rows, json.dumps(note.plain())),
        )
        connection.execute(
            "DELETE FROM millstream.ledger WHERE writer = ? AND batch_id < ?",
            (self.identity.key, batch_id - KEPT),
        )

    def entries(self, connection: DuckDBPyConnection) -> tuple[LedgerEntry, ...]:
        """Return the newest batch of each writer of this query to the table."""
        # This writer's own entry counts even if its query had another name.
        values = (self.identity.key, self.identity.pipeline, self.identity.query, self.target)
        rows = connection.execute(_ENTRIES, values).fetchall()
        return tuple(LedgerEntry(row[0], row[1], row[2], parse_metadata(json.loads(row[3]))) for row in rows)

    def entry(self, connection: DuckDBPyConnection, batch_id: int) -> LedgerEntry | None:
        """Return the entry of one batch of this writer; None if there is none."""
        query = "SELECT committed_at, note FROM millstream.ledger WHERE writer = ? AND batch_id = ?"
        rows = connection.execute(query, (self.identity.key, batch_id)).fetchall()
        entries = [
            LedgerEntry(self.identity.key, batch_id, at, parse_metadata(json.loads(note)))
            for at, note in rows
        ]
        return entries[0] if entries else None
