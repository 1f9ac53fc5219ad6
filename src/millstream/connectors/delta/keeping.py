"""Keeps dead letters in a Delta table, lists and deletes them."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake

from millstream.connectors.delta.sink import DeltaSink
from millstream.connectors.letters import FEW, Keeper, Letter

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.sink import SinkIdentity
    from millstream.spec.location import Location

# Commits of other queries to the same table only add files; each is tried again behind them.
_RETRIES = 100


class DeltaKeeper(Keeper):
    """Keeps the letters of one query.

    On a local file system a batch's few letters come to the driver and are committed without a Spark job: the
    guard of Delta's own writer rebuilds the table's state for each commit, which costs more than the batch.
    That writer is used where they are many, and elsewhere: it knows every file system that Spark knows.
    """

    def __init__(self, location: Location, identity: SinkIdentity) -> None:
        self._location = location
        self._key = identity.key
        self._writer = DeltaSink(path=location, merge_schema=True).writer(identity)
        self._open = False

    def open(self, spark: SparkSession) -> None:
        """Nothing: the table is made with its first letter."""

    def keep(self, frame: DataFrame, batch_id: int, size: int) -> None:
        """Commit one batch's letters with the batch's number."""
        if self._location.local is not None and size < FEW:
            # So few that a task for each partition of each topic would be mostly beginning and end.
            cores = frame.sparkSession.sparkContext.defaultParallelism
            _commit(str(self._location.local), self._key, batch_id, frame.coalesce(cores).toArrow())
            return
        if not self._open:
            self._writer.open(frame.sparkSession, frame.schema)
            self._open = True
        self._writer.write(frame, batch_id)

    def close(self) -> None:
        """Let go of what the writer holds."""
        self._writer.close()


def _commit(path: str, key: str, batch_id: int, rows: pa.Table) -> None:
    kept = DeltaTable(path).transaction_version(key) if DeltaTable.is_deltatable(path) else None
    if kept is None or kept < batch_id:
        mark = CommitProperties(app_transactions=[Transaction(key, batch_id)], max_commit_retries=_RETRIES)
        write_deltalake(path, rows, mode="append", schema_mode="merge", commit_properties=mark)


def kept(location: Location) -> list[Letter]:
    """Every row of the table; one that was written by an older version has fewer columns."""
    if not DeltaTable.is_deltatable(str(location)):
        return []
    stored = DeltaTable(str(location))
    there = {field.name for field in stored.schema().fields}
    names = ", ".join(f'"{field.name}"' for field in fields(Letter) if field.name in there)
    table = (
        QueryBuilder().register("letters", stored).execute(f"SELECT {names} FROM letters")  # noqa: S608 - our own column names
    )
    return [Letter(**row) for row in pa.table(table.read_all()).to_pylist()]


def purge(location: Location, before: datetime | None, source: str | None) -> None:
    """Delete letters that were set aside before a time, of a source, or all; their files too."""
    if not DeltaTable.is_deltatable(str(location)):
        return
    said = []
    if before is not None:
        # A bare TIMESTAMP has nanoseconds, which the log's own figures are not compared with.
        time = f"{before.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
        said.append(f"at < arrow_cast('{time}', 'Timestamp(Microsecond, Some(\"UTC\"))')")
    if source is not None:
        quoted = source.replace("'", "''")
        said.append(f"source = '{quoted}'")
    table = DeltaTable(str(location))
    table.delete(" AND ".join(said) or None, commit_properties=CommitProperties(max_commit_retries=_RETRIES))
    # Only files that the log says are gone: those of a batch that is being set aside are in no log yet.
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
