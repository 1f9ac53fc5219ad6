"""What a Delta table's log says: is the table there, its columns, the batches a writer committed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.connectors.cdc import START
from millstream.connectors.remembered import Entry, noted
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.delta.sink import DeltaSink
    from millstream.connectors.sink import SinkIdentity

# So many commits are looked through, newest first, for what a writer said of its last batch: some three
# milliseconds each, and only at a start whose checkpoint is not the last that wrote to the table.
FAR = 1000


@dataclass(frozen=True)
class Look:
    """A table at one moment; `version` is -1 and the rest empty when there is none."""

    version: int
    columns: tuple[str, ...]
    partitions: tuple[str, ...]
    snapshot: Any

    def batch(self, writer: str) -> int | None:
        """The last batch that `writer` has committed to this table, or None."""
        if self.version < 0:
            return None
        found = self.snapshot.transactions().get(writer)
        return int(found.get()) if found.isDefined() else None

    @property
    def writers(self) -> dict[str, tuple[int, int]]:
        """The last batch of each writer of any query, and when it was committed, in milliseconds since 1970."""
        if self.version < 0:
            return {}
        marks = self.snapshot.setTransactions()
        found = {}
        for mark in (marks.apply(index) for index in range(marks.size())):
            at = mark.lastUpdated()
            found[str(mark.appId())] = (int(mark.version()), int(at.get()) if at.isDefined() else 0)
        return found


def entries(spark: SparkSession, found: Look, owner: SinkIdentity) -> tuple[Entry, ...]:
    """The last batch of this writer, and of those that wrote after it for the same query.

    Whose a batch was stands in the commit, beside its files: of writers that were before this one's last batch
    nothing is asked. One whose commit is gone, or `FAR` commits back, is not known to be of this query. A table
    without files holds nothing that could come twice.
    """
    writers = found.writers
    own = writers.get(owner.key)
    wanted = {key for key, (_, at) in writers.items() if key == owner.key or own is None or at > own[1]}
    if wanted != {owner.key} and not int(found.snapshot.numOfFiles() if writers else 0):
        wanted &= {owner.key}
    told = []
    for said in _commits(spark, found) if wanted else ():
        key = said.get("writer")
        if key in wanted and said.get("batch_id") == writers[key][0]:
            wanted.discard(key)
            if (said.get("pipeline"), said.get("query")) == (owner.pipeline, owner.query):
                told.append(Entry(key, writers[key][0], writers[key][1], noted(said)))
        if not wanted:
            break
    if owner.key in wanted:
        told.append(Entry(owner.key, *writers[owner.key]))
    return tuple(told)


def entry(spark: SparkSession, found: Look, writer: str, batch: int, far: int = FAR) -> Entry | None:
    """What a writer said of one batch, if that is among the last `far` commits."""
    for said in _commits(spark, found, far):
        if said.get("writer") == writer and said.get("batch_id") == batch:
            return Entry(writer, batch, note=noted(said))
    return None


def _commits(spark: SparkSession, found: Look, far: int = FAR) -> Iterator[dict[str, Any]]:
    """What the commits say of themselves, newest first, as far as they are kept."""
    log: Any = found.snapshot.deltaLog()
    names: Any = spark._jvm.org.apache.spark.sql.delta.util.FileNames  # type: ignore[union-attr]  # noqa: SLF001
    conf = log.newDeltaHadoopConf()
    for version in range(found.version, max(found.version - far, -1), -1):
        try:
            lines = log.store().readAsIterator(names.unsafeDeltaFile(log.logPath(), version), conf)
        except Exception as gone:
            # Java's name of a file that is not there differs from one file system to the next.
            if "FileNotFound" in str(gone) or "NoSuchFile" in str(gone):
                return
            raise
        try:
            # Delta puts what is said of a commit into its first line.
            info = json.loads(lines.next() if lines.hasNext() else "{}").get("commitInfo", {})
        finally:
            lines.close()
        try:
            said = json.loads(info.get("userMetadata") or "{}")
        except ValueError:
            continue
        if isinstance(said, dict):
            yield said


def look(spark: SparkSession, sink: DeltaSink) -> Look:
    """Read the log as it stands; Spark's own reader is asked, so any storage that Spark writes to is read."""
    if sink.table is not None and not spark.catalog.tableExists(sink.table):
        return Look(-1, (), (), None)
    found = _logs(spark).forTableWithSnapshot(*_table(spark, sink))
    return _seen(found._2())  # noqa: SLF001 - the second of a Scala pair


def glance(spark: SparkSession, sink: DeltaSink) -> Look:
    """The log as this session's own last commit left it, without asking the file system."""
    return _seen(_logs(spark).forTable(*_table(spark, sink)).unsafeVolatileSnapshot())


def _logs(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]  # noqa: SLF001 - Delta has no Python call for a writer's last batch


def _table(spark: SparkSession, sink: DeltaSink) -> tuple[Any, Any]:
    session: Any = spark._jsparkSession  # noqa: SLF001 - as above
    parser = session.sessionState().sqlParser()
    return session, parser.parseTableIdentifier(sink.table) if sink.table else str(sink.path)


def _seen(snapshot: Any) -> Look:
    version = int(snapshot.version())
    if version < 0:
        return Look(version, (), (), None)
    partitions = str(snapshot.metadata().partitionColumns().mkString("\n"))
    columns = tuple(snapshot.schema().fieldNames())
    return Look(version, columns, tuple(partitions.split("\n") if partitions else ()), snapshot)


def everything(spark: SparkSession, sink: DeltaSink, schema: StructType) -> DataFrame:
    """The rows of the table as it stands, with the columns of `schema`; none before it is made."""
    version = look(spark, sink).version
    if version < 0:
        return spark.createDataFrame([], schema)
    # One version, whatever is written while it is read.
    reader = spark.read.format("delta").option("versionAsOf", str(version))
    frame = reader.load(str(sink.path)) if sink.path is not None else reader.table(str(sink.table))
    held = {name.lower() for name in frame.columns}
    absent = [name for name in schema.names if name.lower() not in held]
    if absent:
        raise NotReady(
            f"Delta table {sink.target()} has no column '{absent[0]}', which the query gives",
            "it was made by another version of the query: compare a table that was made by this one",
        )
    return frame.selectExpr(*(f"`{name.replace('`', '``')}`" for name in schema.names))


def fit(found: Look, sink: DeltaSink, columns: list[str]) -> None:
    """Would the table take rows of these columns? Raises `NotReady` naming what differs."""
    held = {name.lower() for name in found.columns}
    absent = [name for name in columns if name.lower() not in held]
    if absent and not sink.merge_schema:
        raise NotReady(
            f"Delta table {sink.target()} has no column '{absent[0]}'",
            "say merge_schema: true to add it, or leave it out in the view",
        )
    if sink.cdc and not sink.cdc.history and START in held:
        raise NotReady(
            f"Delta table {sink.target()} keeps a history, and the spec says stored_as_scd_type: 1",
            "say stored_as_scd_type: 2, or write to another path",
        )
    if sink.partition_by and _lower(sink.partition_by) != _lower(found.partitions):
        by = f"by {', '.join(found.partitions)}" if found.partitions else "not at all"
        raise NotReady(
            f"Delta table {sink.target()} is partitioned {by}; the spec says {', '.join(sink.partition_by)}",
            "leave out partition_by, or write to another path",
        )


def _lower(names: tuple[str, ...]) -> list[str]:
    """Delta takes upper and lower case for the same name."""
    return [name.lower() for name in names]
