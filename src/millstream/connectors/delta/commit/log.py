"""Read a Delta table's log: its columns, and the batches that each writer committed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.batch_ledger import LedgerEntry, parse_metadata
from millstream.connectors.api.cdc import START
from millstream.connectors.api.ddl import quote_name
from millstream.connectors.delta.commit.column_casts import (
    TYPE_WIDENING,
    describe_key_loss,
    describe_loss,
    is_widened,
)
from millstream.connectors.delta.commit.commit_lock import commit_lock, interruptible_pause
from millstream.diagnostics.failure import NotReady
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.delta.sink import DeltaSink

# Number of commits that are searched, newest first, for what a writer recorded with its last batch. Each takes about
# three milliseconds, and only at a start whose checkpoint did not make the last commit.
FAR = 1000


@dataclass(frozen=True)
class TableSnapshot:
    """A table at one version; `version` is -1 and the rest empty if there is no table."""

    version: int
    columns: tuple[str, ...]
    partitions: tuple[str, ...]
    snapshot: Any

    def batch(self, writer: str) -> int | None:
        """Return the last batch that `writer` committed to this table, or None."""
        last_batch = self.writers.get(writer)
        return None if last_batch is None else last_batch[0]

    @property
    def writers(self) -> dict[str, tuple[int, int]]:
        """Last batch of each writer of any query, and its commit time in milliseconds since 1970."""
        if self.version < 0:
            return {}
        # The checksum of the last commit mostly has them; otherwise Delta computes the table's state, in a Spark job.
        checksum = self.snapshot.checksumOpt()
        known = checksum.get().setTransactions() if checksum.isDefined() else checksum
        transactions = known.get() if known.isDefined() else self.snapshot.setTransactions()
        last_batches = {}
        for transaction in (transactions.apply(index) for index in range(transactions.size())):
            updated = transaction.lastUpdated()
            last_batches[str(transaction.appId())] = (
                int(transaction.version()),
                int(updated.get()) if updated.isDefined() else 0,
            )
        return last_batches

    @property
    def file_count(self) -> int:
        """Number of the table's files."""
        checksum = self.snapshot.checksumOpt()
        return int(checksum.get().numFiles() if checksum.isDefined() else self.snapshot.numOfFiles())


def read_entries(
    spark: SparkSession, snapshot: TableSnapshot, owner: SinkIdentity
) -> tuple[LedgerEntry, ...]:
    """Return the last batch of this writer, and of those that wrote after it for the same query.

    The commit records the query of a batch, so commits before this writer's last batch are not read. A writer whose
    commit is deleted, or more than `FAR` commits back, is not known to belong to this query. A table without files
    has nothing that could be duplicated. Batches that RESTORE took back are left out.
    """
    writers = snapshot.writers
    own_last = writers.get(owner.key)
    pending = {
        key
        for key, (_, time) in writers.items()
        if key == owner.key or own_last is None or time > own_last[1]
    }
    if pending != {owner.key} and not (writers and snapshot.file_count):
        pending &= {owner.key}
    ledger_entries = []
    commits = CommitWalk(spark, snapshot)
    for metadata in commits if pending else ():
        key = metadata.get("writer")
        if key in pending and (key == owner.key or metadata.get("batch_id") == writers[key][0]):
            pending.discard(key)
            # This writer's own entry counts even if its query had another name.
            if key == owner.key or (metadata.get("pipeline"), metadata.get("query")) == (
                owner.pipeline,
                owner.query,
            ):
                batch, at = writers[key]
                if metadata["batch_id"] != batch:
                    batch, at = metadata["batch_id"], commits.committed_at
                ledger_entries.append(LedgerEntry(key, batch, at, parse_metadata(metadata)))
        if not pending:
            break
    if owner.key in pending and not commits.was_restored_before_all:
        ledger_entries.append(LedgerEntry(owner.key, *writers[owner.key]))
    return tuple(entry for entry in ledger_entries if entry.batch >= 0)


def read_entry(spark: SparkSession, snapshot: TableSnapshot, writer: str, batch: int) -> LedgerEntry | None:
    """Return the metadata of one batch, if it is among the last `FAR` commits."""
    for metadata in CommitWalk(spark, snapshot):
        if metadata.get("writer") == writer and metadata.get("batch_id") == batch:
            return LedgerEntry(writer, batch, note=parse_metadata(metadata))
    return None


def is_skipped(spark: SparkSession, snapshot: TableSnapshot, commit_options: Mapping[str, str]) -> bool:
    """Return whether Delta skipped an attempt because the table already had its batch or a later one.

    `commit_options` are the options of the attempt. An attempt that changes nothing may leave no commit at all; it
    does not count as skipped.
    """
    own_metadata = json.loads(commit_options["userMetadata"])
    for metadata in CommitWalk(spark, snapshot):
        if (metadata.get("writer"), metadata.get("batch_id")) == (
            own_metadata["writer"],
            own_metadata["batch_id"],
        ):
            return bool(metadata.get("attempt") != own_metadata["attempt"])
    last = snapshot.batch(commit_options["txnAppId"])
    return last is not None and last >= int(commit_options["txnVersion"])


class CommitWalk:
    """Iterates over the metadata of a table's commits, newest first, as far as they exist, and at most `FAR`.

    Commits that RESTORE took back are left out: the walk continues at the version that it brought back.
    """

    def __init__(self, spark: SparkSession, snapshot: TableSnapshot) -> None:
        self._version = snapshot.version
        self._log: Any = snapshot.snapshot.deltaLog()
        self._conf = self._log.newDeltaHadoopConf()
        self._names: Any = internals.jvm(spark).org.apache.spark.sql.delta.util.FileNames
        self._was_restored = False
        self.committed_at = 0
        """The time of the commit whose metadata was yielded last, in milliseconds since 1970."""

    @property
    def was_restored_before_all(self) -> bool:
        """Whether the walk passed a RESTORE and came to the beginning of the table."""
        return self._was_restored and self._version < 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the metadata of each commit that has some."""
        for _ in range(FAR):
            # Delta writes the commit's metadata in its first line.
            first = next(self._actions(self._version), None) if self._version >= 0 else None
            if first is None:
                return
            info = first.get("commitInfo", {})
            if info.get("operation") == "RESTORE":
                restored = self._restored_version(self._version, info.get("operationParameters") or {})
                if restored is None:
                    return
                self._version, self._was_restored = restored, True
                continue
            self._version -= 1
            try:
                metadata = json.loads(info.get("userMetadata") or "{}")
            except ValueError:
                continue
            if isinstance(metadata, dict):
                self.committed_at = int(info.get("timestamp") or 0)
                yield metadata

    def _restored_version(self, version: int, parameters: Mapping[str, Any]) -> int | None:
        """Return the version that the RESTORE in commit `version` brought back; None if its commit is deleted.

        A time in the parameters has no zone, so that the files of the table tell then.
        """
        if str(parameters.get("version")).isdigit():
            return int(str(parameters["version"]))
        # Files of the restored table that the version before the commits seen so far lacks, and files of that version
        # that the restored table lacks.
        absent: set[str] = set()
        surplus: set[str] = set()
        while version >= 0:
            actions = list(self._actions(version))
            if not actions:
                return None
            added = {_file_key(action["add"]) for action in actions if "add" in action}
            removed = {_file_key(action["remove"]) for action in actions if "remove" in action}
            absent, surplus = absent | (added - surplus), surplus - added
            absent, surplus = absent - removed, surplus | (removed - absent)
            version -= 1
            if not absent and not surplus:
                break
        return version

    def _actions(self, version: int) -> Iterator[dict[str, Any]]:
        """Yield the actions of a commit; none if the commit does not exist."""
        path = self._names.unsafeDeltaFile(self._log.logPath(), version)
        try:
            lines = self._log.store().readAsIterator(path, self._conf)
        except Exception as error:
            # The Java name of a missing file depends on the file system.
            if "FileNotFound" in str(error) or "NoSuchFile" in str(error):
                return
            raise
        try:
            while lines.hasNext():
                yield json.loads(lines.next())
        finally:
            lines.close()


def _file_key(action: Mapping[str, Any]) -> str:
    """Return what identifies a file of a table: its path, and the rows that are deleted from it."""
    return json.dumps([action.get("path"), action.get("deletionVector")], sort_keys=True)


def read_snapshot(spark: SparkSession, sink: DeltaSink) -> TableSnapshot:
    """Read the current log with Spark's own reader, so that any storage Spark can write to works."""
    if sink.table is not None and not spark.catalog.tableExists(sink.table):
        return TableSnapshot(-1, (), (), None)
    pair = delta_log(spark).forTableWithSnapshot(*table_arguments(spark, sink))
    return _take_snapshot(pair._2())  # noqa: SLF001 - the second of a Scala pair


def cached_snapshot(spark: SparkSession, sink: DeltaSink) -> TableSnapshot:
    """Return the log as this session's last commit left it, without reading the file system."""
    return _take_snapshot(delta_log(spark).forTable(*table_arguments(spark, sink)).unsafeVolatileSnapshot())


def delta_log(spark: SparkSession) -> Any:
    """Return Delta's class of logs."""
    return internals.jvm(spark).org.apache.spark.sql.delta.DeltaLog


def table_arguments(spark: SparkSession, sink: DeltaSink) -> tuple[Any, Any]:
    """Return the session and the table's path or name, as Delta's log takes them."""
    session: Any = internals.java_session(spark)
    parser = session.sessionState().sqlParser()
    return session, parser.parseTableIdentifier(sink.table) if sink.table else str(sink.path)


def _take_snapshot(snapshot: Any) -> TableSnapshot:
    version = int(snapshot.version())
    if version < 0:
        return TableSnapshot(version, (), (), None)
    partitions = str(snapshot.metadata().partitionColumns().mkString("\n"))
    columns = tuple(snapshot.schema().fieldNames())
    return TableSnapshot(version, columns, tuple(partitions.split("\n") if partitions else ()), snapshot)


def table_lock(spark: SparkSession, sink: DeltaSink) -> AbstractContextManager[None]:
    """Return the lock that lets one process at a time commit to the table; no lock for a remote table.

    Where Delta writes the rows and commits them in one call, the lock covers both. A catalog table that does not
    exist yet has no folder to lock.
    """
    return commit_lock(_local_folder(spark, sink), interruptible_pause(spark))


def _local_folder(spark: SparkSession, sink: DeltaSink) -> Path | None:
    if sink.path is not None:
        return sink.path.local
    if not spark.catalog.tableExists(str(sink.table)):
        return None
    uri = delta_log(spark).forTable(*table_arguments(spark, sink)).dataPath().toUri()
    return Path(str(uri.getPath())) if uri.getScheme() in (None, "file") else None


def read_table(spark: SparkSession, sink: DeltaSink, schema: StructType) -> DataFrame:
    """Read the table's rows with the columns of `schema`; no rows if the table does not exist."""
    version = read_snapshot(spark, sink).version
    if version < 0:
        return spark.createDataFrame([], schema)
    # Pin one version, because the table may be written while it is read.
    reader = spark.read.format("delta").option("versionAsOf", str(version))
    frame = reader.load(str(sink.path)) if sink.path is not None else reader.table(str(sink.table))
    column_names = {name.lower() for name in frame.columns}
    absent = [name for name in schema.names if name.lower() not in column_names]
    if absent:
        raise NotReady(
            f"Delta table {sink.target()} has no column '{absent[0]}', which the query has",
            "the table is from another version of the query: write to a new path, or add the column",
        )
    return frame.selectExpr(*(quote_name(name) for name in schema.names))


def require_compatible(snapshot: TableSnapshot, sink: DeltaSink, columns: list[str]) -> None:
    """Raise `NotReady` if the table would not accept rows with these columns."""
    column_names = {name.lower() for name in snapshot.columns}
    absent = [name for name in columns if name.lower() not in column_names]
    if absent and not sink.merge_schema:
        raise NotReady(
            f"Delta table {sink.target()} has no column '{absent[0]}'",
            "set merge_schema: true to add the column, or remove it from the view",
        )
    if sink.cdc and not sink.cdc.has_history and START in column_names:
        raise NotReady(
            f"Delta table {sink.target()} contains a history, but the spec has stored_as_scd_type: 1",
            "set stored_as_scd_type: 2, or write to another path",
        )
    if sink.partition_by and _lower(sink.partition_by) != _lower(snapshot.partitions):
        partitioning = f"by {', '.join(snapshot.partitions)}" if snapshot.partitions else "by no column"
        raise NotReady(
            f"Delta table {sink.target()} is partitioned {partitioning}, "
            f"but the spec has {', '.join(sink.partition_by)}",
            "remove partition_by, or write to another path",
        )


def require_lossless(snapshot: TableSnapshot, sink: DeltaSink, schema: StructType) -> None:
    """Raise `NotReady` if a merge of these columns would cast values to the table's types and lose a part of them.

    A part of the values is also lost if two keys become equal.
    """
    may_widen = False
    if sink.merge_schema:
        widening = snapshot.snapshot.metadata().configuration().get(TYPE_WIDENING)
        may_widen = widening.isDefined() and str(widening.get()).lower() == "true"
    table_schema = type(schema).fromJson(json.loads(snapshot.snapshot.schema().json()))
    types = {field.name.lower(): field.dataType.simpleString() for field in table_schema}
    written, keys = set(sink.takes(schema.names)), _lower(sink.row_key)
    for field in schema:
        column_type, query_type = types.get(field.name.lower(), ""), field.dataType.simpleString()
        if field.name not in written or (may_widen and is_widened(column_type, query_type)):
            continue
        loss = describe_loss(column_type, query_type)
        cast = f"CAST({quote_name(field.name)} AS {column_type.upper()})"
        fix = f"cast it in the view, {cast}, or write to another path"
        if not loss and field.name.lower() in keys:
            # After a cast in the view the keys would be equal, too.
            loss = describe_key_loss(column_type, query_type)
            fix = "write to another path, or create the table again with the type of the query"
        if loss:
            raise NotReady(
                f"column '{field.name}' of Delta table {sink.target()} is {column_type}, but the query's column is "
                f"{query_type}: {loss}",
                fix,
            )


def _lower(names: tuple[str, ...]) -> list[str]:
    """Convert to lower case, because Delta ignores the case of names."""
    return [name.lower() for name in names]
