"""Writes batches to Postgres: rows and the batch's number in one transaction, behind a fence."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Identifier

from millstream.connectors.failpoints import reach
from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.changes import Changes
from millstream.connectors.postgres.connect import connect
from millstream.connectors.postgres.errors import clean, explain
from millstream.connectors.postgres.incoming import DELETED, Incoming
from millstream.connectors.postgres.ledger import Ledger
from millstream.connectors.postgres.naming import bad_column, parts
from millstream.connectors.postgres.reading import within
from millstream.connectors.postgres.rows import Rows, Wired, column_type, wired
from millstream.connectors.postgres.staging import Staging, leftovers
from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.diagnostics.failure import MillstreamError, NotReady
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.postgres.sink import PostgresSink
    from millstream.connectors.remembered import Entry

# Rows are in the driver's memory before the transaction opens, so it is never idle for long; ten minutes are
# enough for some hundred million rows. A lock that is not had in ten seconds is somebody's open transaction.
_LIMITS = SQL(
    "SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = '10min';"
    " SET LOCAL idle_in_transaction_session_timeout = '1min'"
)
_INCOMING = Identifier("pg_temp", "millstream_incoming")


class PostgresWriter(Writer):
    """Delivers batches to one table.

    The fence makes a second run of the same query harmless: each start claims the next epoch, and a
    transaction of an older epoch is refused. The ledger makes a repeated batch harmless: it stands there.
    """

    sums = True

    def __init__(self, sink: PostgresSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self._sink = sink
        self._address = sink.address()
        self._ledger = Ledger(sink.ledger_schema, identity)
        self._connection: psycopg.Connection[Any] | None = None
        self._table: tables.Table | None = None
        self._wired: tuple[Wired, ...] = ()
        self._by_tasks = {"auto": None, "driver": False, "tasks": True}[sink.through]
        self._prefix = f"incoming_{hashlib.sha256(identity.key.encode()).hexdigest()[:8]}_"
        self._epoch = 0

    def open(self, spark: SparkSession, schema: StructType) -> None:  # noqa: ARG002 - the contract's signature
        """Make ledger and table where they are missing, look the table over, and claim the next epoch."""
        columns = self._sink.columns or self._sink.takes(schema.names)
        key, cdc = self._sink.row_key, self._sink.cdc
        for name in (*columns, *key):
            if name not in schema.names:
                raise NotReady(
                    f"the query gives no column '{name}', which table {self._sink.table} is to get",
                    f"correct {'cdc' if cdc else 'merge_on or columns'}, or select it in the view",
                )
            if wrong := bad_column(name):
                raise NotReady(wrong, "rename the column in the view")
        types = {name: column_type(schema[name]) for name in columns}
        if cdc:
            types |= dict.fromkeys(cdc.own, types[cdc.sequence_by])
        connection = self._connected()
        try:
            self._ledger.make(connection)
            if self._sink.create and tables.find(connection, self._sink.table) is None:
                # In update mode a row is replaced as often as its window or key changes; so it is by changes.
                replaced = self.identity.mode is OutputMode.UPDATE or self._sink.cdc is not None
                room = tables.REPLACED_FILLFACTOR if replaced else None
                tables.make(connection, self._sink.table, types, key, room)
            self._table = tables.find(connection, self._sink.table)
            if self._table is None:
                raise NotReady(
                    f"there is no table {self._sink.table}", "create it, or leave out `create: false`"
                )
            tables.fit(self._table, tuple(types), key, "cdc" if cdc else "merge_on")
            if cdc and tables.find(connection, self._deletions) is None:
                tables.make(
                    connection,
                    self._deletions,
                    {name: self._table.casts[name] for name in (*cdc.keys, cdc.sequence_by)},
                    key,
                )
            self._wired = wired(schema, columns, self._table.types)
            if self._sink.marks is not None:
                self._wired += (Wired(DELETED, f"{self._sink.marks[1]} AS {DELETED}", "bool", fits=False),)
            with connection.transaction():
                connection.execute(_LIMITS)
                self._epoch = self._ledger.claim(connection)
            leftovers(connection, self._sink.ledger_schema, self._prefix)
        except psycopg.Error as error:
            raise self._explained(error) from error

    def remembered(self, spark: SparkSession) -> tuple[Entry, ...]:  # noqa: ARG002 - the database is asked
        """What the ledger says of this query and table; where the table is empty, of this writer alone."""
        try:
            connection = self._connected()
            found = self._ledger.entries(connection, self._sink.table)
            own = tuple(one for one in found if one.writer == self.identity.key)
            return found if found != own and tables.filled(connection, self._sink.table) else own
        except psycopg.Error as error:
            raise self._explained(error) from error

    def entry(self, batch_id: int) -> Entry | None:
        """What the ledger says of one batch."""
        try:
            return self._ledger.entry(self._connected(), batch_id)
        except psycopg.Error as error:
            raise self._explained(error) from error

    def holds(self, batch_id: int) -> bool:
        """Is this batch, or a later one, in the ledger?"""
        try:
            last = self._last()
        except psycopg.Error as error:
            raise self._explained(error) from error
        return last is not None and batch_id <= last

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Write one batch in one transaction, or nothing.

        Raises `Outage` when trying again may help, `CannotGoOn` when a later run has taken over, and another
        `MillstreamError` when the rows themselves are refused.
        """
        if self.holds(batch_id):
            return Written(rows=0, skipped=True)
        try:
            # Spark's work is done before the transaction opens: a slow batch holds no lock.
            rows = self._gather(frame, batch_id)
            reach("postgres.staged")
            written = self._settle(rows, batch_id)
        except psycopg.Error as error:
            raise self._explained(error) from error
        return Written(rows=rows.count) if written else Written(rows=0, skipped=True)

    def trial(self, frame: DataFrame) -> None:
        """Copy rows in a transaction that is rolled back; in complete mode nothing, since others are in the way."""
        if self._table is None or self.identity.mode is OutputMode.COMPLETE:
            return
        try:
            rows = Rows(frame, self._wired)
            connection = self._connected()
            with connection.transaction(force_rollback=True):
                connection.execute(_LIMITS)
                if rows.count:
                    self._take(connection, rows)
        except psycopg.Error as error:
            raise self._explained(error) from error

    def _settle(self, rows: Rows | Staging, batch_id: int) -> bool:
        """Commit; what the ledger says counts when the connection broke on the way back."""
        try:
            return self._commit(rows, batch_id)
        except psycopg.Error as error:
            if self._lost() and self.holds(batch_id):
                return True
            if error.sqlstate == psycopg.errors.CardinalityViolation.sqlstate:
                raise self._repeated(rows) from error
            raise

    def _gather(self, frame: DataFrame, batch_id: int) -> Rows | Staging:
        """The batch's rows, in the driver's memory or staged by the tasks."""
        if self._by_tasks is None:
            # On one machine the driver is where the tasks are, and rows are written once and not twice.
            master = frame.sparkSession.sparkContext.master or ""
            self._by_tasks = not master.startswith("local")
        if not self._by_tasks:
            try:
                return Rows(frame, self._wired)
            except Exception as error:
                # Spark's own class for this cannot be told from others but by the setting's name.
                if "spark.driver.maxResultSize" not in str(error):
                    raise
                self._by_tasks = True
        name = f"{self._prefix}{self._epoch}_{batch_id}"
        staging = Staging(self._address, self._sink.ledger_schema, name, self._wired)
        staging.fill(self._connected(), frame)
        return staging

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _last(self) -> int | None:
        """The last batch in the ledger; a connection that broke between two batches is opened again."""
        try:
            return self._ledger.last(self._connected())
        except psycopg.OperationalError:
            if not self._lost():
                raise
            return self._ledger.last(self._connected())

    def _commit(self, rows: Rows | Staging, batch_id: int) -> bool:
        """The transaction. False when another run had written the batch meanwhile."""
        connection = self._connected()
        with connection.transaction():
            connection.execute(_LIMITS)
            self._ledger.enter(connection, self._epoch)
            note, table = self.note(batch_id), self._sink.table
            if not self._ledger.record(connection, batch_id, self._epoch, table, rows.count, note):
                return False
            if self.identity.mode is OutputMode.COMPLETE:
                connection.execute(SQL("TRUNCATE {}").format(self._target.identifier))
            if self._sink.replaced is not None:
                connection.execute(
                    SQL("DELETE FROM {} WHERE {}").format(
                        self._target.identifier, within(self._sink.replaced, self._target)
                    )
                )
            if rows.count:
                self._take(connection, rows)
            if isinstance(rows, Staging):
                rows.drop(connection)
            reach("postgres.open")
        reach("postgres.committed")
        return True

    def _take(self, connection: psycopg.Connection[Any], rows: Rows | Staging) -> None:
        """Put the rows into the table: straight, where nothing has to be compared or cast, or by way of another."""
        if isinstance(rows, Staging):
            rows.check(connection)
            incoming = Incoming(self._target, self._wired, rows.identifier, rows.chosen())
        elif not self._keyed and all(one.fits for one in self._wired):
            self._copy(connection, rows, self._target.identifier)
            return
        else:
            self._stage(connection, rows)
            incoming = Incoming(self._target, self._wired, _INCOMING)
        if self._sink.cdc:
            Changes(self._sink.cdc, incoming, Identifier(*parts(self._deletions))).take(connection)
            return
        if not self._keyed:
            connection.execute(incoming.insert())
            return
        self._refuse_null_keys(connection, incoming)
        if self._sink.delete_when is not None:
            connection.execute(incoming.delete(self._sink.merge_on))
        connection.execute(incoming.upsert(self._sink.merge_on))

    def _copy(self, connection: psycopg.Connection[Any], rows: Rows, into: Identifier) -> None:
        """Send the rows into a table."""
        names = tables.commas(tuple(one.name for one in self._wired))
        statement = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(into, names)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            rows.send(copy)

    def _stage(self, connection: psycopg.Connection[Any], rows: Rows) -> None:
        """Send the rows into a table that ends with the transaction: no index, no WAL."""
        columns = [SQL("{} {}").format(Identifier(one.name), SQL(one.wire)) for one in self._wired]
        connection.execute(
            SQL("CREATE TEMP TABLE millstream_incoming ({}) ON COMMIT DROP").format(SQL(", ").join(columns))
        )
        self._copy(connection, rows, _INCOMING)

    def _refuse_null_keys(self, connection: psycopg.Connection[Any], incoming: Incoming) -> None:
        """A null key would match no row and be added again by each batch, unless the index says otherwise."""
        for name in self._target.distinct_nulls(self._sink.merge_on):
            if connection.execute(incoming.nulls(name)).fetchone():
                raise MillstreamError(
                    f"a row for table {self._sink.table} has no key: merge_on column '{name}' is null",
                    f"leave out rows where {name} IS NULL in the view, or give them a value",
                )

    def _repeated(self, rows: Rows | Staging) -> MillstreamError:
        """Say which key came twice in one batch; looked up only once the upsert was refused."""
        key = self._sink.merge_on
        connection = self._connected()
        with connection.transaction(force_rollback=True):
            if isinstance(rows, Staging):
                incoming = Incoming(self._target, self._wired, rows.identifier, rows.chosen())
            else:
                self._stage(connection, rows)
                incoming = Incoming(self._target, self._wired, _INCOMING)
            row = connection.execute(incoming.repeated(key)).fetchone() or ()
        shown = ", ".join(f"{name} = {clean(str(value))}" for name, value in zip(key, row, strict=False))
        return MillstreamError(
            f"two rows of one batch have the same key for table {self._sink.table}: {shown}",
            "aggregate or drop duplicates by the key in the view, so that each batch has one row a key",
        )

    @property
    def _keyed(self) -> bool:
        """Do rows replace rows of the same key?"""
        return bool(self._sink.row_key) and self.identity.mode is not OutputMode.COMPLETE

    @property
    def _deletions(self) -> str:
        return f"{self._sink.ledger_schema}.{self._sink.deletions}"

    @property
    def _target(self) -> tables.Table:
        assert self._table is not None, "write before open"
        return self._table

    def _connected(self) -> psycopg.Connection[Any]:
        """The connection; opened again if the last one broke. The epoch stays: only `open` claims one."""
        if self._connection is None or self._connection.closed:
            identity = self.identity
            self._connection = connect(self._address, f"millstream {identity.pipeline}/{identity.query}")
        return self._connection

    def _lost(self) -> bool:
        return self._connection is None or self._connection.closed

    def _explained(self, error: psycopg.Error) -> MillstreamError:
        return explain(error, self._address.shown, self._sink.table)
