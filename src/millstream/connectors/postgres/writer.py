"""Write batches to Postgres, with the rows and the batch id in one transaction behind a fence."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Identifier

from millstream.connectors.api.messages import repeated_key_error
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.connectors.failpoints import hit_failpoint
from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.changes import TableChanges
from millstream.connectors.postgres.client.connection import connect
from millstream.connectors.postgres.client.errors import explain
from millstream.connectors.postgres.client.identifiers import column_problem, split_table_name
from millstream.connectors.postgres.copy.incoming import DELETED, Incoming
from millstream.connectors.postgres.copy.rows import CopyColumn, CopyRows, column_type, encode_columns
from millstream.connectors.postgres.copy.staging import Staging, drop_leftover_tables
from millstream.connectors.postgres.ledger import Ledger
from millstream.connectors.postgres.table_reader import range_condition, session_time
from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.spark.cluster.stored_rows import is_too_large_for_driver
from millstream.spark.settings import is_local
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from psycopg.sql import Composed
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.postgres.sink import PostgresSink

# Rows are in the driver's memory before the transaction opens, so that it is never idle for long; ten minutes are
# enough for some hundred million rows. A lock that is not free after ten seconds belongs to another open transaction.
# Spark never runs a committed batch again, so the commit must be on disk before it returns, whatever the setting of
# the role or the server. `remote_apply` waits for more and is kept.
_LIMITS = SQL(
    "SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = '10min';"
    " SET LOCAL idle_in_transaction_session_timeout = '1min';"
    " SELECT set_config('synchronous_commit', 'on', true)"
    " WHERE current_setting('synchronous_commit') <> 'remote_apply'"
)
_INCOMING = Identifier("pg_temp", "millstream_incoming")


class PostgresWriter(Writer):
    """Delivers batches to one table.

    The fence makes a second run of the same query harmless: each start claims the next epoch, and a transaction of an
    older epoch is rejected. The ledger makes a repeated batch harmless, because it already has the batch.
    """

    has_checksums = True
    has_ledger = True

    def __init__(self, sink: PostgresSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self._sink = sink
        self._address = sink.address()
        self._ledger = Ledger(sink.ledger_schema, identity)
        self._connection: psycopg.Connection[Any] | None = None
        self._table: tables.Table | None = None
        self._wired: tuple[CopyColumn, ...] = ()
        self._replaced: Composed | SQL | None = None
        self._by_tasks = sink.through == "tasks"
        self._prefix = f"incoming_{hashlib.sha256(identity.key.encode()).hexdigest()[:8]}_"
        self._epoch = 0
        # The last batch that this start has written.
        self._newest: int | None = None

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Create missing tables, check the table, and claim the next epoch."""
        if self._sink.through == "auto":
            # On one machine the tasks run in the driver's process, and copying once is cheaper than staging.
            self._by_tasks = not is_local(str(spark.sparkContext.master))
        columns = self._sink.columns or self._sink.takes(schema.names)
        key, cdc = self._sink.row_key, self._sink.cdc
        for name in (*columns, *key):
            if name not in schema.names:
                raise NotReady(
                    f"the query has no column '{name}', which table {self._sink.table} requires",
                    f"correct {'cdc' if cdc else 'merge_on or columns'}, or select it in the view",
                )
            if reason := column_problem(name):
                raise NotReady(reason, "rename the column in the view")
        types = {name: column_type(schema[name]) for name in columns}
        if cdc:
            types |= dict.fromkeys(cdc.history_columns, types[cdc.sequence_by])
        connection = self._connect()
        try:
            self._ledger.make(connection)
            if self._sink.create and tables.find_table(connection, self._sink.table) is None:
                # In update mode and for changes, a row is replaced whenever its window or key changes.
                is_replaced = self.identity.mode is OutputMode.UPDATE or self._sink.cdc is not None
                fillfactor = tables.REPLACED_FILLFACTOR if is_replaced else None
                with connection.transaction():
                    if tables.create_table(connection, self._sink.table, types, key, fillfactor):
                        self._ledger.forget(connection, self._sink.table)
                        if cdc:
                            # Deletions of a table that was dropped say nothing about the rows of the new one.
                            tables.drop_table(connection, self._deletions)
            self._table = tables.find_table(connection, self._sink.table)
            if self._table is None:
                raise NotReady(
                    f"there is no table {self._sink.table}", "create it, or remove `create: false`"
                )
            tables.require_compatible(self._table, tuple(types), key, "cdc" if cdc else "merge_on")
            if cdc:
                compared = {name: self._table.casts[name] for name in (*cdc.keys, cdc.sequence_by)}
                tables.create_or_alter(connection, self._deletions, compared, key)
            if self._sink.replaced is not None:
                self._replaced = range_condition(
                    self._sink.replaced, self._table, partial(session_time, spark)
                )
            self._wired = encode_columns(schema, columns, self._table)
            if self._sink.delete_marker is not None:
                self._wired += (
                    CopyColumn(
                        DELETED, f"{self._sink.delete_marker[1]} AS {DELETED}", "bool", is_table_type=False
                    ),
                )
            with connection.transaction():
                connection.execute(_LIMITS)
                self._epoch = self._ledger.claim(connection)
                # The claim may have waited for another run's transaction. An error takes it back.
                self.require_owner()
            drop_leftover_tables(connection, self._sink.ledger_schema, self._prefix)
        except psycopg.Error as error:
            raise self._explain_error(error) from error

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:  # noqa: ARG002 - the database is asked
        """Return the ledger entries of this query and table; for an empty table, only those of this writer.

        A table that was dropped has no batch.
        """
        try:
            connection = self._connect()
            entries = self._ledger.entries(connection, self._sink.table)
            if entries and tables.find_table(connection, self._sink.table) is None:
                return ()
            own = tuple(entry for entry in entries if entry.writer == self.identity.key)
            return own if entries != own and not tables.has_rows(connection, self._sink.table) else entries
        except psycopg.Error as error:
            raise self._explain_error(error) from error

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the ledger entry of one batch."""
        try:
            return self._ledger.entry(self._connect(), batch_id)
        except psycopg.Error as error:
            raise self._explain_error(error) from error

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the ledger has this batch or a later one."""
        try:
            last = self._last_batch()
        except psycopg.Error as error:
            raise self._explain_error(error) from error
        return last is not None and batch_id <= last

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Write one batch in one transaction, or nothing if it was written before.

        Raises `Outage` if a retry may help, `CheckpointError` if a later run has taken over, and another
        `MillstreamError` if the rows themselves are rejected.
        """
        return self._write(lambda: self._collect_rows(frame, batch_id), batch_id)

    @property
    def accepts_rows(self) -> bool:
        """Whether the driver sends the rows, and Spark has nothing to convert before."""
        return not self._by_tasks and all(column.is_unconverted for column in self._wired)

    def write_rows(self, rows: pa.Table, batch_id: int) -> WriteResult:
        """Write one batch whose rows are in the driver's memory. Raises as `write` does."""
        names = [column.name for column in self._wired]
        return self._write(lambda: CopyRows(rows.select(names)), batch_id)

    def _write(self, collect: Callable[[], CopyRows | Staging], batch_id: int) -> WriteResult:
        if self.has_batch(batch_id):
            return WriteResult(rows=0, is_skipped=True)
        try:
            # Spark computes the rows before the transaction opens, so that a slow batch holds no lock.
            rows = collect()
            hit_failpoint("postgres.staged")
            result = self._commit_or_recover(rows, batch_id)
        except psycopg.Error as error:
            raise self._explain_error(error) from error
        self._newest = batch_id
        return WriteResult(rows=rows.count) if result else WriteResult(rows=0, is_skipped=True)

    def trial(self, frame: DataFrame) -> None:
        """Copy rows in a transaction that is rolled back.

        Does nothing in complete mode, where other rows interfere.
        """
        if self._table is None or self.identity.mode is OutputMode.COMPLETE:
            return
        try:
            rows = self._collect_in_driver(frame)
            connection = self._connect()
            with connection.transaction(force_rollback=True):
                connection.execute(_LIMITS)
                if rows.count:
                    self._move_rows(connection, rows)
        except psycopg.Error as error:
            raise self._explain_error(error) from error

    def _commit_or_recover(self, rows: CopyRows | Staging, batch_id: int) -> bool:
        """Commit; if the connection broke before the response, the ledger shows whether to commit once more."""
        try:
            try:
                return self._commit(rows, batch_id)
            except psycopg.Error:
                if not self._is_disconnected():
                    raise
                # The fence lets a lost transaction that still runs end first. If that one commits, the second finds
                # the batch in the ledger.
                if not self.has_batch(batch_id):
                    self._commit(rows, batch_id)
                return True
        except psycopg.errors.CardinalityViolation as error:
            if duplicate := self._find_duplicate(rows):
                raise duplicate from error
            raise

    def _collect_rows(self, frame: DataFrame, batch_id: int) -> CopyRows | Staging:
        """Return the batch's rows, in the driver's memory or staged by the tasks."""
        if not self._by_tasks:
            try:
                return self._collect_in_driver(frame)
            except Exception as error:
                if not is_too_large_for_driver(error):
                    raise
                self._by_tasks = True
                self.reset_metrics()
        name = f"{self._prefix}{self._epoch}_{batch_id}"
        staging = Staging(self._address, self._sink.ledger_schema, name, self._wired)
        staging.fill(self._connect(), frame)
        return staging

    def _collect_in_driver(self, frame: DataFrame) -> CopyRows:
        """Execute the batch and return its rows; its own errors are raised unchanged."""
        return CopyRows(frame.selectExpr(*(column.sql for column in self._wired)).toArrow())

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _last_batch(self) -> int | None:
        """Return the last batch in the ledger, reconnecting if the connection broke between two batches."""
        try:
            return self._ledger.last(self._connect(), self._newest)
        except psycopg.OperationalError:
            if not self._is_disconnected():
                raise
            return self._ledger.last(self._connect(), self._newest)

    def _commit(self, rows: CopyRows | Staging, batch_id: int) -> bool:
        """Commit the transaction; return False if another run has written the batch in the meantime."""
        connection = self._connect()
        with connection.transaction():
            connection.execute(_LIMITS)
            self._ledger.enter(connection, self._epoch)
            note, table = self.note(batch_id), self._sink.table
            if not self._ledger.record(connection, batch_id, self._epoch, table, rows.count, note):
                return False
            if self.identity.mode is OutputMode.COMPLETE:
                connection.execute(SQL("TRUNCATE {}").format(self._target.identifier))
            if self._replaced is not None:
                connection.execute(
                    SQL("DELETE FROM {} WHERE {}").format(self._target.identifier, self._replaced)
                )
            if rows.count:
                self._move_rows(connection, rows)
            if isinstance(rows, Staging):
                rows.drop(connection)
            hit_failpoint("postgres.open")
        hit_failpoint("postgres.committed")
        return True

    def _move_rows(self, connection: psycopg.Connection[Any], rows: CopyRows | Staging) -> None:
        """Move the rows into the table: directly if no comparison or cast is needed, or else by a staging table."""
        if isinstance(rows, Staging):
            rows.check(connection)
            incoming = Incoming(self._target, self._wired, rows.identifier, rows.chosen())
        elif not self._has_key and all(column.is_table_type for column in self._wired):
            self._copy(connection, rows, self._target.identifier)
            return
        else:
            self._stage(connection, rows)
            incoming = Incoming(self._target, self._wired, _INCOMING)
        if self._sink.cdc:
            deletions = Identifier(*split_table_name(self._deletions))
            TableChanges(self._sink.cdc, incoming, deletions).take(connection)
            return
        if not self._has_key:
            connection.execute(incoming.insert())
            return
        self._refuse_null_keys(connection, incoming)
        if incoming.hides_repeated(self._sink.merge_on) and (
            repeated := self._duplicate_error(connection, incoming)
        ):
            raise repeated
        if self._sink.delete_when is not None:
            connection.execute(incoming.delete(self._sink.merge_on))
            if self._target.has_equal_nulls(self._sink.merge_on):
                connection.execute(incoming.delete_nulls(self._sink.merge_on))
        incoming.replace(connection, self._sink.merge_on)

    def _copy(self, connection: psycopg.Connection[Any], rows: CopyRows, target: Identifier) -> None:
        """Copy the rows into a table."""
        names = tables.comma_separated(tuple(column.name for column in self._wired))
        statement = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(target, names)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            rows.send(copy)

    def _stage(self, connection: psycopg.Connection[Any], rows: CopyRows) -> None:
        """Copy the rows into a temporary table without index and WAL, dropped with the transaction."""
        columns = [SQL("{} {}").format(Identifier(column.name), SQL(column.wire)) for column in self._wired]
        connection.execute(
            SQL("CREATE TEMP TABLE millstream_incoming ({}) ON COMMIT DROP").format(SQL(", ").join(columns))
        )
        self._copy(connection, rows, _INCOMING)

    def _refuse_null_keys(self, connection: psycopg.Connection[Any], incoming: Incoming) -> None:
        """Reject a null key, which would match no row and be inserted by each batch, unless the index allows it."""
        for name in self._target.distinct_nulls(self._sink.merge_on):
            if connection.execute(incoming.nulls(name)).fetchone():
                raise MillstreamError(
                    f"a row for table {self._sink.table} has a null key: merge_on column '{name}'",
                    f"filter out rows where {name} IS NULL in the view, or give them a value",
                )

    def _find_duplicate(self, rows: CopyRows | Staging) -> MillstreamError | None:
        """Find the duplicate key; called only after the upsert was rejected."""
        connection = self._connect()
        with connection.transaction(force_rollback=True):
            if isinstance(rows, Staging):
                incoming = Incoming(self._target, self._wired, rows.identifier, rows.chosen())
            else:
                self._stage(connection, rows)
                incoming = Incoming(self._target, self._wired, _INCOMING)
            return self._duplicate_error(connection, incoming)

    def _duplicate_error(
        self, connection: psycopg.Connection[Any], incoming: Incoming
    ) -> MillstreamError | None:
        """Return the error for a key that occurs more than once, counting deletions; None if there is none."""
        key = self._sink.merge_on
        row = connection.execute(incoming.repeated(key)).fetchone()
        if row is None:
            return None
        *values, count, deletions = row
        return repeated_key_error(
            f"table {self._sink.table}", dict(zip(key, values, strict=True)), count, deletions
        )

    @property
    def _has_key(self) -> bool:
        """Whether rows replace rows with the same key."""
        return bool(self._sink.row_key) and self.identity.mode is not OutputMode.COMPLETE

    @property
    def _deletions(self) -> str:
        return f"{self._sink.ledger_schema}.{self._sink.deletions}"

    @property
    def _target(self) -> tables.Table:
        assert self._table is not None, "write before open"
        return self._table

    def _connect(self) -> psycopg.Connection[Any]:
        """Return the connection, reconnecting if it broke. The epoch stays, because only `open` claims one."""
        if self._connection is None or self._connection.closed:
            identity = self.identity
            self._connection = connect(self._address, f"millstream {identity.pipeline}/{identity.query}")
        return self._connection

    def _is_disconnected(self) -> bool:
        return self._connection is None or self._connection.closed

    def _explain_error(self, error: psycopg.Error) -> MillstreamError:
        return explain(error, self._address.label, self._sink.table)
