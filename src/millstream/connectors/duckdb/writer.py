"""Writer of DuckDB tables: the rows, the batch id and its metadata in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.connectors.api.messages import repeated_key_error
from millstream.connectors.api.writer import Writer, WriteResult
from millstream.connectors.duckdb.database import (
    column_types,
    open_database,
    quote,
    quote_column,
    table_columns,
    transaction,
)
from millstream.connectors.duckdb.ledger import DuckdbLedger
from millstream.connectors.duckdb.times import cast_columns, find_casts
from millstream.connectors.failpoints import hit_failpoint
from millstream.diagnostics.failure import NotReady
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.duckdb.sink import DuckdbSink

_INCOMING = "millstream_incoming"


class DuckdbWriter(Writer):
    """Writes the batches of one query to one table.

    Each start claims the next epoch, and a transaction of an older epoch is rejected. A repeated batch finds its
    number in the ledger and changes nothing.
    """

    has_checksums = True
    has_ledger = True

    def __init__(self, sink: DuckdbSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self._sink, self._path, self._table = sink, sink.file(), quote(sink.table)
        self._ledger = DuckdbLedger(identity, sink.table.lower().removeprefix("main."))
        self._epoch = 0
        self._last: int | None = None
        self._casts: dict[str, str] = {}
        self._source = _INCOMING

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:  # noqa: ARG002 - the file is asked
        """Return the ledger entries of this query and table; for an empty table, only those of this writer.

        A table that was dropped has no batch.
        """
        if not self._path.is_file():
            return ()
        with open_database(self._path, read_only=True) as connection:
            if not table_columns(connection, "millstream.ledger"):
                return ()
            if not table_columns(connection, self._sink.table):
                return ()
            entries = self._ledger.entries(connection)
            has_rows = connection.execute(
                f"SELECT 1 FROM {self._table} LIMIT 1"  # noqa: S608 - a quoted name
            ).fetchone()
        return tuple(entry for entry in entries if has_rows or entry.writer == self.identity.key)

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Create missing tables, check the table, and claim the next epoch."""
        empty = spark.createDataFrame([], schema).toArrow()
        with transaction(self._path) as connection:
            self._ledger.create(connection)
            if "." in self._sink.table:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(self._sink.table.split('.')[0])}")
            connection.register(_INCOMING, empty)
            if not table_columns(connection, self._sink.table):
                connection.execute(f"CREATE TABLE {self._table} AS SELECT * FROM {_INCOMING}")  # noqa: S608 - a quoted name
                self._ledger.forget(connection)
            connection.unregister(_INCOMING)
            types = column_types(connection, self._sink.table)
            existing = {name.lower(): kind for name, kind in types.items()}
            for name in (*schema.names, *self._sink.merge_on):
                if name.lower() not in existing:
                    raise NotReady(
                        f"DuckDB table {self._sink.table} has no column '{name}'",
                        "add it with ALTER TABLE, or leave it out of the query and of merge_on",
                    )
            self._casts = find_casts(empty.schema, existing)
            self._source = _in_table_types(self._sink.merge_on, existing)
            self._epoch = self._ledger.claim(connection)
            self.require_owner()
            self._last = self._ledger.last_batch(connection)

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the ledger has this batch or a later one. Only this run can have added one since `open`."""
        return self._last is not None and batch_id <= self._last

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the ledger entry of one batch."""
        with open_database(self._path, read_only=True) as connection:
            return self._ledger.entry(connection, batch_id)

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Write one batch in one transaction, or nothing if it was written before.

        Raises `Outage` if a retry may help, `CheckpointError` if a later run has taken over, and another
        `MillstreamError` if the rows themselves are rejected.
        """
        if self.has_batch(batch_id):
            return WriteResult(rows=0, is_skipped=True)
        # Spark computes the rows before the transaction opens, so that a slow batch holds no lock.
        rows = cast_columns(frame, self._casts).toArrow()
        hit_failpoint("duckdb.staged")
        with transaction(self._path) as connection:
            self._ledger.require_epoch(connection, self._epoch)
            # A commit of this run may have come to the disk although it raised an error.
            self._last = self._ledger.last_batch(connection)
            if self.has_batch(batch_id):
                return WriteResult(rows=0, is_skipped=True)
            connection.register(_INCOMING, rows)
            self._move_rows(connection, rows.column_names)
            connection.unregister(_INCOMING)
            self._ledger.record(connection, batch_id, rows.num_rows, self.note(batch_id))
            hit_failpoint("duckdb.open")
        hit_failpoint("duckdb.committed")
        self._last = batch_id
        return WriteResult(rows=rows.num_rows)

    def _move_rows(self, connection: DuckDBPyConnection, names: list[str]) -> None:
        columns = [quote_column(name) for name in names]
        if self.identity.mode is OutputMode.COMPLETE:
            connection.execute(f"DELETE FROM {self._table}")  # noqa: S608 - a quoted name, as below
        elif self._sink.merge_on:
            key = [quote_column(name) for name in self._sink.merge_on]
            self._refuse_repeated_keys(connection, key)
            same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM s.{name}" for name in key)
            changes = ", ".join(f"{name} = s.{name}" for name in columns)
            values = ", ".join(f"s.{name}" for name in columns)
            connection.execute(
                f"MERGE INTO {self._table} AS t USING {self._source} AS s ON {same}"  # noqa: S608
                f" WHEN MATCHED THEN UPDATE SET {changes}"
                f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({values})"
            )
            return
        connection.execute(f"INSERT INTO {self._table} BY NAME SELECT * FROM {_INCOMING}")  # noqa: S608

    def _refuse_repeated_keys(self, connection: DuckDBPyConnection, key: list[str]) -> None:
        """Raise an error with the key if two rows of the batch have the same one."""
        columns = ", ".join(key)
        repeated: tuple[Any, ...] | None = connection.execute(
            f"SELECT {columns}, count(*) FROM {self._source} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
        ).fetchone()
        if repeated is not None:
            values = dict(zip(self._sink.merge_on, repeated[:-1], strict=True))
            raise repeated_key_error(f"DuckDB table {self._sink.table}", values, repeated[-1], 0)


def _in_table_types(key: tuple[str, ...], types: Mapping[str, str]) -> str:
    """Return SQL for the incoming rows, whose key is cast as it is stored.

    A key of more decimal places than its column would otherwise differ from the stored, rounded one, and be added
    again by each batch. `types` has the table's types by lower-case name.
    """
    casts = ", ".join(
        f"CAST({quote_column(name)} AS {types[name.lower()]}) AS {quote_column(name)}" for name in key
    )
    return f"(SELECT * REPLACE ({casts}) FROM {_INCOMING})" if casts else _INCOMING  # noqa: S608 - quoted names
