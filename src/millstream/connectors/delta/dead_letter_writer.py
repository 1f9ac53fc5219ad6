"""Write dead letters to a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from millstream.connectors.api.dead_letters import FEW, DeadLetterWriter
from millstream.connectors.delta.commit.commit_lock import WRITING_LOCK_FILE, commit_lock, interruptible_pause
from millstream.connectors.delta.commit.delta_rs_paths import is_misread
from millstream.connectors.delta.commit.maintenance import SHORT_HISTORY, WITHOUT_HOOKS, TableMaintenance
from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.delta.writer import DeltaWriter
from millstream.spark.cluster.stored_rows import is_too_large_for_driver

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.spec.location import Location

# Commits of other queries to the same table only add files, so that each attempt can follow theirs.
RETRIES = 100
# Of the bounds of a file's columns only those of the time are read, by the list of the newest dead letters. delta-rs
# parses the bounds of all files for each commit.
PROPERTIES = {"delta.dataSkippingStatsColumns": "at", **SHORT_HISTORY}


class DeltaDeadLetterWriter(DeadLetterWriter):
    """Writes the dead letters of one query.

    On a local file system, a few dead letters of a batch are collected in the driver and committed by delta-rs,
    because Delta's own writer rebuilds the table's state for each commit, which costs more than the batch. That
    writer is used for many dead letters, for all file systems of Spark, and for a folder that delta-rs would misread.

    Every writer of a file of a local table holds one of its locks from the first byte on. Under both locks, a file in
    no entry of the log is therefore one of a killed process.
    """

    def __init__(self, location: Location, identity: SinkIdentity) -> None:
        self._location = location
        # The table's folder if delta-rs can append to it.
        local = location.local
        self._folder = None if local is None or is_misread(local, appends=True) else local
        self._key = identity.key
        self._writer = DeltaWriter(DeltaSink(path=location, merge_schema=True, maintain=False), identity)
        # The commits of delta-rs do not name their batches, so that the whole log would be read.
        self._writer.follows_restore = False
        # Dead letters that someone has deleted are not missing, unlike rows of a sink.
        self._writer.recreates_table = True
        self._maintenance = None if self._folder is None else TableMaintenance(self._folder, SHORT_HISTORY)
        self._open = False
        # The table as of this writer's last commit, and that commit's file: reading a log takes longer than a commit.
        self._table: tuple[DeltaTable, tuple[int, int]] | None = None

    def open(self, spark: SparkSession) -> None:
        """Do nothing: the first dead letter creates the table."""

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> bool:
        """Commit one batch's dead letters with the batch id."""
        if self._folder is not None and size < FEW:
            # So few that a task for each partition of each topic would be mostly overhead.
            cores = frame.sparkSession.sparkContext.defaultParallelism
            try:
                rows = frame.coalesce(cores).toArrow()
            except Exception as error:
                # `size` is that of the records without the other columns, which takes more if records are short.
                if not is_too_large_for_driver(error):
                    raise
            else:
                with commit_lock(self._folder, interruptible_pause(frame.sparkSession)):
                    return self._commit(self._folder, batch_id, rows)
        pause = interruptible_pause(frame.sparkSession)
        with commit_lock(self._location.local, pause, WRITING_LOCK_FILE):
            if not self._open:
                self._writer.open(frame.sparkSession, frame.schema)
                self._open = True
            return not self._writer.write(frame, batch_id).is_skipped

    def keep_rows(self, spark: SparkSession, rows: pa.Table, batch_id: int) -> None:
        """Commit dead letters with the batch id, without a Spark job if the table is local."""
        if self._folder is None:
            super().keep_rows(spark, rows, batch_id)
            return
        with commit_lock(self._folder, interruptible_pause(spark)):
            self._commit(self._folder, batch_id, rows)

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()

    def _commit(self, folder: Path, batch_id: int, rows: pa.Table) -> bool:
        """Commit the rows. Returns False if the log has the batch. The caller holds the table's lock."""
        table = self._current_table(folder)
        last_batch = None if table is None else table.transaction_version(self._key)
        if last_batch is not None and last_batch >= batch_id:
            return False
        properties = CommitProperties(
            app_transactions=[Transaction(self._key, batch_id)], max_commit_retries=RETRIES
        )
        write_deltalake(
            table or folder,
            rows,
            mode="append",
            schema_mode="merge",
            configuration=PROPERTIES if table is None else None,
            commit_properties=properties,
            post_commithook_properties=WITHOUT_HOOKS,
        )
        self._table = None
        if table is None:
            return True
        # After its maintenance the table is opened again: an open one takes longer with each of its commits.
        is_maintained = self._maintenance is not None and self._maintenance.run_if_due(table)
        if not is_maintained and (commit := _newest_commit(folder, table)) is not None:
            self._table = table, commit
        return True

    def _current_table(self, folder: Path) -> DeltaTable | None:
        """Return the table with all commits to its log; None if there is no table."""
        if self._table is not None:
            table, commit = self._table
            # Else the table's folder was deleted meanwhile, and may have another table.
            if _newest_commit(folder, table) == commit:
                table.update_incremental()
                return table
        return DeltaTable(folder) if DeltaTable.is_deltatable(str(folder)) else None


def _newest_commit(folder: Path, table: DeltaTable) -> tuple[int, int] | None:
    """Return the identity of the log's file with the newest commit that `table` knows; None if it is deleted."""
    try:
        status = (folder / "_delta_log" / f"{table.version():020}.json").stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns
