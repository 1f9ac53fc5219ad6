"""Take back the number of a writer's last batch if RESTORE has taken back its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.connectors.delta.commit.log import CommitWalk, delta_log, table_arguments, table_lock
from millstream.connectors.delta.commit.statement_settings import with_settings
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from millstream.connectors.delta.commit.log import TableSnapshot
    from millstream.connectors.delta.sink import DeltaSink

NONE = -1
"""The number of a writer whose batches were all taken back."""


def follow_restore(
    spark: SparkSession,
    sink: DeltaSink,
    snapshot: TableSnapshot,
    writer: str,
    surveyed: tuple[int, int | None],
    commit_metadata: Callable[[int], str],
) -> int | None:
    """Return the last batch of a writer, of which the table has the rows; `NONE` or None if it has none.

    RESTORE brings back the files of an older version, and keeps the numbers of all batches. If the number is of a
    batch that was taken back, an older number is committed, because Delta would skip the batches after it.
    `surveyed` is a version of the table and the writer's last batch in it, which is not looked up again then.
    """
    recorded = snapshot.batch(writer)
    if recorded is None or recorded < 0:
        return recorded
    version, restored = surveyed
    if version != snapshot.version:
        restored = _find_restored(spark, snapshot, writer, recorded)
    if restored == recorded:
        return recorded
    batch = NONE if restored is None else restored
    with table_lock(spark, sink), with_settings(spark, {"userMetadata": commit_metadata(batch)}):
        _commit_number(spark, sink, writer, batch)
    return batch


def _find_restored(spark: SparkSession, snapshot: TableSnapshot, writer: str, recorded: int) -> int | None:
    """Return the last batch of a writer that no RESTORE took back, or None."""
    commits = CommitWalk(spark, snapshot)
    for metadata in commits:
        if metadata.get("writer") == writer:
            return int(metadata["batch_id"]) if metadata["batch_id"] >= 0 else None
    return None if commits.was_restored_before_all else recorded


def _commit_number(spark: SparkSession, sink: DeltaSink, writer: str, batch: int) -> None:
    """Commit the number of a writer's last batch, also one that is less than the number before."""
    java: Any = internals.jvm(spark)
    delta, option = java.org.apache.spark.sql.delta, java.scala.Option
    log = delta_log(spark).forTable(*table_arguments(spark, sink))
    transaction = log.startTransaction(option.apply(None), option.apply(None))
    now = option.apply(java.java.lang.System.currentTimeMillis())
    actions = java.java.util.ArrayList()
    actions.add(delta.actions.SetTransaction(writer, batch, now))
    operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
    transaction.commit(java.org.apache.spark.api.python.PythonUtils.toSeq(actions), operation)
