"""Repartition the state of a stopped query by Spark's own operation, on a copy that then takes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from millstream.checkpoint import adoption_log
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.operations.transfer import copy_files, find_absolute_path
from millstream.checkpoint.remote.path import RemotePath, require_local, to_spark_path
from millstream.checkpoint.replacement import name_backup, prepare_folder, replace_checkpoint
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.events.event_bus import now
from millstream.engine.sink_keys import sink_keys
from millstream.spark import internals

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.pipeline.model import Pipeline

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def find_repartition_conflict(folder: CheckpointPath) -> str:
    """Explain why Spark cannot repartition the state of a checkpoint, as a clause; empty if it can."""
    if isinstance(folder, RemotePath):
        return "its folder is on a remote file system, which cannot copy it in place"
    checkpoint = Checkpoint(folder)
    planned = checkpoint.planned()
    offsets = None if planned is None else checkpoint.offsets(planned)
    if offsets is None or planned != checkpoint.committed():
        return f"batch {planned} is planned and not committed"
    if "RocksDB" not in offsets.conf.get(_PROVIDER, ""):
        return "Spark repartitions only state in RocksDB, and this state is in files (HDFSBackedStateStoreProvider)"
    if find_absolute_path(folder) is not None:
        return "the state names its files by their absolute path, as that of processors does"
    return ""


def repartition(spark: SparkSession, pipeline: Pipeline, query: str, partitions: int) -> Path:
    """Repartition the state of a query. Returns where the checkpoint as it was is kept.

    Spark writes the new state as a batch without input, which no sink gets. The checkpoint records that. A kill
    leaves the checkpoint as it was, or the repartitioned one. Raises `CheckpointError` if Spark cannot do it.
    """
    folder = require_local(pipeline.checkpoint_folder(query), "repartitioning its state")
    with CheckpointLock(folder, f"{pipeline.name}.{query} plan --apply"):
        if conflict := find_repartition_conflict(folder):
            raise CheckpointError(
                f"the state of query '{query}' cannot be repartitioned: {conflict}",
                "set the number of shuffle partitions back to its former value, with which the query continues in "
                "any case",
            )
        committed = Checkpoint(folder).committed()
        assert committed is not None, "find_repartition_conflict has compared it"
        prepared = prepare_folder(folder)
        copy_files(folder, prepared)
        try:
            internals.repartition_state(spark, to_spark_path(prepared), partitions)
        except PySparkException as error:
            raise CheckpointError(
                f"Spark cannot repartition the state of query '{query}': {str(error).splitlines()[0]}",
                "set the number of shuffle partitions back to its former value; the checkpoint is unchanged",
            ) from error
        newest = Checkpoint(prepared).committed() or committed
        query_id = Checkpoint(prepared).query_id()
        for key in sink_keys(pipeline, query):
            adoption_log.add_missing(
                prepared, key, f"{query_id}/{key}", range(committed + 1, newest + 1), now()
            )
        backup = name_backup(folder, "repartition", committed)
        replace_checkpoint(folder, prepared, backup)
    return backup
