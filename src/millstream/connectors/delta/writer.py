"""Write batches to a Delta table, with the rows and the batch id in one commit of its log."""

from __future__ import annotations

import json
import random
import time
import uuid
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.checkpoint import empty_batches
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult, conflicting_batch_error
from millstream.connectors.delta.changes import ChangeBatch
from millstream.connectors.delta.commit.log import (
    TableSnapshot,
    cached_snapshot,
    is_skipped,
    read_entries,
    read_entry,
    read_snapshot,
    require_compatible,
    require_lossless,
    table_lock,
)
from millstream.connectors.delta.commit.numbered_append import NumberedAppend
from millstream.connectors.delta.commit.restored import follow_restore
from millstream.connectors.delta.commit.sink_maintenance import SinkMaintenance
from millstream.connectors.delta.commit.small_merge import BY_DELTA_RS, MergeOutcome, SmallMerge
from millstream.connectors.delta.commit.statement_settings import with_settings
from millstream.connectors.delta.errors import (
    deleted_table_error,
    error_condition,
    explain,
    is_concurrent_write,
)
from millstream.connectors.delta.keyed_merge import GONE, KeyedMerge
from millstream.connectors.failpoints import hit_failpoint
from millstream.diagnostics.failure import NotReady, Outage
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.connectors.delta.sink import DeltaSink

# A commit that loses against another writer is repeated on that writer's result. After five losses in a row, another
# writer is rewriting the same files all the time, and a longer wait would only hide it.
ATTEMPTS = 5
FIRST_WAIT = 0.2


class DeltaWriter(Writer):
    """Delivers batches to one table.

    Delta stores each writer's last batch id in the log, in the same commit as the rows, and ignores a write whose
    number is not greater. A repeated batch therefore changes nothing, even if two drivers write it.
    """

    has_ledger = True
    follows_restore = True
    """Whether `open` looks for a RESTORE that took back batches of this writer."""
    recreates_table = False
    """Whether an append creates a table again that was deleted after `open`."""

    def __init__(self, sink: DeltaSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self._sink = sink
        self._spark: SparkSession | None = None
        self._exists = False
        self._partition_columns: tuple[str, ...] = ()
        self._last: int | None = None
        """Last batch in the log; set by `open`, and reset after a failed write."""
        self._is_last_known = False
        self._surveyed: tuple[int, int | None] = (-1, None)
        """The version of the table whose log was read for the last batch, and that batch."""
        self._changes = ChangeBatch(sink, sink.cdc) if sink.cdc else None
        self._maintenance = SinkMaintenance(sink, identity.mode)
        self._small = (
            SmallMerge.of(sink, GONE, self._sink.is_deletion, self._maintenance.table)
            if self._merges
            else None
        )
        # A merge first checks whether the batch has rows, so it executes the batch twice. A merge of changes stores
        # the deletions first, so it executes the batch three times.
        self.passes = (3 if self._changes else 2) if self._merges else 1
        self.has_checksums = self._merges
        self.skips_empty = self._merges

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Check an existing table; the first batch creates a missing one."""
        self._spark = spark
        if self._sink.row_key and (with_backtick := [name for name in schema.names if "`" in name]):
            raise NotReady(
                f"column '{with_backtick[0]}' contains a backtick, which Delta's MERGE cannot read",
                "rename it in the view",
            )
        query_columns = {name.lower() for name in schema.names}
        for field, names in self._sink.named_columns().items():
            if absent := [name for name in names if name.lower() not in query_columns]:
                raise NotReady(
                    f"{field} contains column '{absent[0]}', which the query does not have",
                    f"correct {field}, or select the column in the view",
                )
        if self._sink.delete_marker is not None:
            field, deletion = self._sink.delete_marker
            try:
                spark.createDataFrame([], schema).selectExpr(deletion)
            except Exception as error:
                # Spark's own errors cannot be imported here: reading a spec needs no Spark.
                if not (condition_name := error_condition(error)):
                    raise
                raise NotReady(
                    f"{field} of {self._sink.target()} is not a valid condition over the query's columns "
                    f"({condition_name})",
                    f"correct it; the columns are {', '.join(schema.names)}",
                ) from error
        snapshot = self._read_log()
        if self._exists:
            require_compatible(snapshot, self._sink, self._sink.table_columns(schema.names))
            if self._merges:
                require_lossless(snapshot, self._sink, schema)
        if self._changes and not self._exists:
            self.require_owner()
            self._changes.drop_deletions(spark)
        if self.follows_restore:
            self._last = follow_restore(
                spark, self._sink, snapshot, self.identity.key, self._surveyed, self._commit_metadata
            )

    def last_committed_batches(self, spark: SparkSession) -> tuple[LedgerEntry, ...]:
        """Return the entries of this query in the table's log."""
        snapshot = read_snapshot(spark, self._sink)
        entries = read_entries(spark, snapshot, self.identity) if snapshot.version >= 0 else ()
        own = next((entry.batch for entry in entries if entry.writer == self.identity.key), None)
        self._surveyed = snapshot.version, own
        return entries

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the entry of one batch in the table's log."""
        snapshot = read_snapshot(self._session, self._sink)
        if snapshot.version < 0:
            return None
        return read_entry(self._session, snapshot, self.identity.key, batch_id)

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the table's log has this batch or a later one."""
        if not self._is_last_known:
            self._read_log()
        return self._last is not None and batch_id <= self._last

    def _read_log(self) -> TableSnapshot:
        snapshot = read_snapshot(self._session, self._sink)
        self._exists = snapshot.version >= 0
        self._partition_columns = snapshot.partitions if self._exists else self._sink.partition_by
        self._last, self._is_last_known = snapshot.batch(self.identity.key), True
        if self._changes:
            self._changes.partition_columns = self._partition_columns
        return snapshot

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Commit one batch, or nothing if it was committed before. Only merged rows are counted.

        A batch without rows, as Spark runs one after each move of the watermark, is not merged.

        Raises `MillstreamError` if the rows are rejected, `Outage` if other writers win repeatedly, and
        `CheckpointMismatch` if the table was deleted, or has this batch with other records.
        """
        small = None if self.has_batch(batch_id) else self._collect_small(frame)
        rows = (frame.count() if small is None else small.num_rows) if self._merges else None
        for attempt in range(ATTEMPTS):
            if self.has_batch(batch_id):
                return self._passed_over(batch_id) if attempt else WriteResult(rows=0, is_skipped=True)
            if rows == 0 and self._exists:
                self._record_empty(batch_id)
                return WriteResult(rows=0, is_recorded=False)
            if attempt:
                self.reset_metrics()
            commit_options = self._commit_options(batch_id)
            try:
                if self._changes:
                    self._changes.keep_deletions(frame)
                hit_failpoint("delta.before")
                outcome = self._commit(frame, batch_id, commit_options, small)
                hit_failpoint("delta.committed")
            except Exception as error:
                # Any failure leaves open whether the commit happened, so the log is read again.
                self._is_last_known = False
                if is_concurrent_write(error_condition(error)) and attempt + 1 < ATTEMPTS:
                    time.sleep(FIRST_WAIT * 2**attempt * (0.5 + random.random()))  # noqa: S311 - spreads retries
                    continue
                explained = explain(error, self._sink)
                if explained is None:
                    raise
                raise explained from error
            if outcome is MergeOutcome.UNKNOWN:
                self._is_last_known, small = False, None
                continue
            if outcome is MergeOutcome.ALREADY_THERE or (
                outcome is MergeOutcome.UNFIT
                and is_skipped(self._session, cached_snapshot(self._session, self._sink), commit_options)
            ):
                return self._passed_over(batch_id)
            is_recorded = outcome is not MergeOutcome.UNCHANGED
            if not is_recorded:
                self._record_empty(batch_id)
            self._last, self._exists = batch_id, True
            if outcome is MergeOutcome.UNFIT:
                self._maintenance.after_spark(self._session)
            way = "" if outcome is MergeOutcome.UNFIT else BY_DELTA_RS
            return WriteResult(rows=rows, way=way, is_recorded=is_recorded)
        raise Outage(f"batch {batch_id} may or may not be written", "nothing to do: it is repeated")

    def _record_empty(self, batch_id: int) -> None:
        if self.checkpoint is not None:
            empty_batches.add(self.checkpoint, self.identity.sink, batch_id)

    def _passed_over(self, batch_id: int) -> WriteResult:
        """Return the result of a batch whose number another commit used after this writer had read the log.

        Only a run from a copy of the checkpoint, or an attempt of this query with a lost response, writes under this
        number. Raises `CheckpointMismatch` unless the log's entry is for the same records.
        """
        self._is_last_known = False
        note, recorded = self.note(batch_id), self.entry(batch_id)
        if note.is_known and (recorded is None or recorded.note.contradicts(note)):
            raise conflicting_batch_error(self.identity, batch_id)
        return WriteResult(rows=0, is_skipped=True)

    def _collect_small(self, frame: DataFrame) -> pa.Table | None:
        """Return the rows of a batch that may be merged without Spark, or None. Spark creates a table."""
        return self._small.collect(frame) if self._small is not None and self._exists else None

    def _merge_small(
        self, rows: pa.Table | None, schema: StructType, commit_options: dict[str, str]
    ) -> MergeOutcome:
        """Make one attempt to merge collected rows without Spark."""
        if rows is None or self._small is None:
            return MergeOutcome.UNFIT
        with table_lock(self._session, self._sink):
            return self._small.commit(rows, schema, commit_options)

    @property
    def _merges(self) -> bool:
        keyed = bool(self._sink.row_key) and self.identity.mode is not OutputMode.COMPLETE
        return keyed and self._sink.replaced is None

    def _commit_options(self, batch_id: int) -> dict[str, str]:
        """Return the log entries of one attempt, as options of Delta's writer."""
        return {
            "txnAppId": self.identity.key,
            "txnVersion": str(batch_id),
            "userMetadata": self._commit_metadata(batch_id),
        }

    def _commit(
        self, frame: DataFrame, batch_id: int, commit_options: dict[str, str], small: pa.Table | None
    ) -> MergeOutcome:
        """Make one attempt to commit the batch; `UNFIT` if Spark did it."""
        outcome = self._merge_small(small, frame.schema, commit_options)
        if outcome is MergeOutcome.UNFIT:
            self._commit_with_spark(frame, batch_id, commit_options)
        return outcome

    def _commit_with_spark(self, frame: DataFrame, batch_id: int, commit_options: dict[str, str]) -> None:
        if self._sink.replaced is not None and self._exists:
            self._replace(frame, batch_id, commit_options, self._sink.replaced)
        elif self.identity.mode is OutputMode.COMPLETE:
            self._save(frame, "overwrite", commit_options)
        elif self._changes:
            self._change(self._changes, frame, commit_options)
        elif not self._sink.merge_on:
            self._append(frame, commit_options)
        else:
            with self._unique_rows(frame, batch_id) as source:
                if self._exists:
                    with (
                        table_lock(self._session, self._sink),
                        with_settings(frame.sparkSession, commit_options),
                    ):
                        frame.sparkSession.sql(self._keyed(frame).statement(source))
                else:
                    # In a new table no key can match, so every row is added by the commit that creates it. If another
                    # writer creates it first, this commit fails, and the next attempt merges.
                    rows = frame.sparkSession.sql(source)
                    if self._sink.delete_when is not None:
                        rows = rows.where(f"NOT {self._sink.is_deletion}")
                    self._save(rows, "error", commit_options)

    def _append(self, frame: DataFrame, commit_options: dict[str, str]) -> None:
        """Add the rows, without a lookup of the table's state if the log's checksum has this writer's last number.

        Raises `CheckpointMismatch` if the table was deleted, unless it may be created again without its earlier rows.
        """
        if self._exists and self._sink.path is not None:
            schema_options = {"mergeSchema": "true"} if self._sink.merge_schema else {}
            numbered = NumberedAppend(frame, str(self._sink.path), {**commit_options, **schema_options})
            if numbered.last() is not None:
                numbered.commit(table_lock(self._session, self._sink))
                return
            has_table = numbered.has_table
        else:
            has_table = not self._exists or self._session.catalog.tableExists(str(self._sink.table))
        if not (has_table or self.recreates_table):
            raise deleted_table_error(self._sink, self.identity.query)
        self._save(frame, "append", commit_options)

    def _save(self, frame: DataFrame, mode: str, options: dict[str, str]) -> None:
        """Append to the table or overwrite it; create it if it is missing. Mode `error` only creates it."""
        writer = frame.write.format("delta").mode(mode).options(**options)
        partition_columns: Sequence[str] = ()
        # Delta changes no schema while it replaces a part of a table.
        if self._sink.merge_schema and "replaceWhere" not in options:
            if mode == "overwrite":
                writer = writer.option("overwriteSchema", "true")
                # Delta replaces the partitioning together with the schema.
                query_columns = {name.lower() for name in frame.columns}
                partition_columns = [
                    name for name in self._partition_columns if name.lower() in query_columns
                ]
            else:
                writer = writer.option("mergeSchema", "true")
        if not self._exists:
            writer = writer.options(**self._maintenance.creation_properties)
            partition_columns = self._sink.partition_by
        if partition_columns:
            writer = writer.partitionBy(*partition_columns)
        with table_lock(self._session, self._sink):
            if self._sink.path is not None:
                writer.save(str(self._sink.path))
            else:
                # A commit that creates a catalog table takes its metadata from the session, not from options.
                with with_settings(frame.sparkSession, {"userMetadata": options["userMetadata"]}):
                    writer.saveAsTable(str(self._sink.table))

    def _replace(
        self, frame: DataFrame, batch_id: int, commit_options: dict[str, str], time_range: EventTimeRange
    ) -> None:
        """Replace the rows of a range."""
        options = {**commit_options, "replaceWhere": time_range.sql()}
        if not self._sink.merge_on:
            self._save(frame, "overwrite", options)
            return
        with self._unique_rows(frame, batch_id) as source:
            self._save(frame.sparkSession.sql(source), "overwrite", options)

    def _change(self, changes: ChangeBatch, frame: DataFrame, commit_options: dict[str, str]) -> None:
        """Merge the changes into the table."""
        if not self._exists:
            self._save(changes.first(frame), "error", commit_options)
            return
        with (
            changes.merging(frame, self._sink.merge_schema) as statement,
            table_lock(self._session, self._sink),
            with_settings(frame.sparkSession, commit_options),
        ):
            frame.sparkSession.sql(statement)

    @contextmanager
    def _unique_rows(self, frame: DataFrame, batch_id: int) -> Iterator[str]:
        """Yield SQL for the batch's rows that fails at a duplicate key; valid only inside the `with`."""
        view = f"millstream_{self.identity.query_id}_{batch_id}".replace("-", "_")
        frame.createOrReplaceTempView(view)
        try:
            yield self._keyed(frame).unique_rows(view)
        finally:
            frame.sparkSession.catalog.dropTempView(view)

    def _keyed(self, frame: DataFrame) -> KeyedMerge:
        return KeyedMerge(self._sink, frame.schema, self._partition_columns)

    def _commit_metadata(self, batch_id: int) -> str:
        """Return the metadata that the table's history shows for the commit."""
        identity, note = self.identity, self.note(batch_id)
        if not self._merges:
            # An append or overwrite sets this before the rows are computed; only a merge has already computed them.
            note = replace(note, content=None)
        owner = {"pipeline": identity.pipeline, "query": identity.query, "writer": identity.key}
        return json.dumps({**owner, "batch_id": batch_id, "attempt": uuid.uuid4().hex, **note.plain()})

    @property
    def _session(self) -> SparkSession:
        assert self._spark is not None, "used before open"
        return self._spark
