"""Write dead letters to a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from millstream.connectors.api.dead_letters import FEW, DeadLetterWriter
from millstream.connectors.delta.commit.commit_lock import commit_lock, interruptible_pause
from millstream.connectors.delta.sink import DeltaSink

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.spec.location import Location

# Commits of other queries to the same table only add files, so that each attempt can follow theirs.
RETRIES = 100


class DeltaDeadLetterWriter(DeadLetterWriter):
    """Writes the dead letters of one query.

    On a local file system, a few dead letters of a batch are collected in the driver and committed by delta-rs,
    because Delta's own writer rebuilds the table's state for each commit, which costs more than the batch. That
    writer is used for many dead letters, and for all file systems of Spark.
    """

    def __init__(self, location: Location, identity: SinkIdentity) -> None:
        self._location = location
        self._key = identity.key
        self._writer = DeltaSink(path=location, merge_schema=True).writer(identity)
        self._open = False

    def open(self, spark: SparkSession) -> None:
        """Do nothing: the first dead letter creates the table."""

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> None:
        """Commit one batch's dead letters with the batch number."""
        if self._location.local is not None and size < FEW:
            # So few that a task for each partition of each topic would be mostly overhead.
            cores = frame.sparkSession.sparkContext.defaultParallelism
            self.keep_rows(frame.sparkSession, frame.coalesce(cores).toArrow(), batch_id)
            return
        if not self._open:
            self._writer.open(frame.sparkSession, frame.schema)
            self._open = True
        self._writer.write(frame, batch_id)

    def keep_rows(self, spark: SparkSession, rows: pa.Table, batch_id: int) -> None:
        """Commit dead letters with the batch number, without a Spark job if the table is local."""
        if self._location.local is None:
            super().keep_rows(spark, rows, batch_id)
            return
        with commit_lock(self._location.local, interruptible_pause(spark)):
            _commit(str(self._location.local), self._key, batch_id, rows)

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()


def _commit(path: str, key: str, batch_id: int, rows: pa.Table) -> None:
    last_batch = DeltaTable(path).transaction_version(key) if DeltaTable.is_deltatable(path) else None
    if last_batch is None or last_batch < batch_id:
        properties = CommitProperties(
            app_transactions=[Transaction(key, batch_id)], max_commit_retries=RETRIES
        )
        write_deltalake(path, rows, mode="append", schema_mode="merge", commit_properties=properties)
