"""Writes batches to a Delta table: rows and the batch's number in one commit of the table's log."""

from __future__ import annotations

import json
import random
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.connectors.ddl import quoted
from millstream.connectors.delta.append import NumberedAppend
from millstream.connectors.delta.changes import Changes
from millstream.connectors.delta.errors import condition, explain, of_another_writer
from millstream.connectors.delta.log import entries, entry, fit, glance, look
from millstream.connectors.failpoints import reach
from millstream.connectors.sink import SinkIdentity, Writer, Written, contested
from millstream.diagnostics.failure import NotReady
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.cut import Cut
    from millstream.connectors.delta.sink import DeltaSink
    from millstream.connectors.remembered import Entry

# A commit that loses against another writer's is made again from that writer's result. Five times in a row
# means that somebody rewrites the same files all the time, and waiting longer would only hide it.
ATTEMPTS = 5
FIRST_WAIT = 0.2

# A batch's own commit is the newest, unless another query's came in between.
NEAR = 5

GONE = "__removed"
"""The column of a merge's source that marks rows which remove others."""

_APP = "spark.databricks.delta.write.txnAppId"
_BATCH = "spark.databricks.delta.write.txnVersion"
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"


class DeltaWriter(Writer):
    """Delivers batches to one table.

    Delta keeps the last batch number of each writer in the log, in the same commit as the rows, and ignores a
    write whose number is not greater: a repeated batch changes nothing, also when two drivers write it.
    """

    def __init__(self, sink: DeltaSink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self._sink = sink
        self._spark: SparkSession | None = None
        self._exists = False
        self._last: int | None = None
        """The last batch in the log; known after `open`, forgotten by a failed write."""
        self._known = False
        self._changes = Changes(sink, sink.cdc) if sink.cdc else None
        # A merge asks first whether the batch has rows, so that it runs the batch twice; of changes, the deletions
        # are kept before the rest.
        self.passes = (3 if self._changes else 2) if self._merges else 1
        self.sums = self._merges

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Look the table over, if it is there; the first batch makes it."""
        self._spark = spark
        if self._sink.row_key and (odd := [name for name in schema.names if "`" in name]):
            raise NotReady(
                f"column '{odd[0]}' has a backtick, which Delta's MERGE cannot read", "rename it in the view"
            )
        given = {name.lower() for name in schema.names}
        for field, names in self._sink.named().items():
            if absent := [name for name in names if name.lower() not in given]:
                raise NotReady(
                    f"{field} names column '{absent[0]}', which the query does not give",
                    f"correct {field}, or select the column in the view",
                )
        if self._sink.marks is not None:
            field, gone = self._sink.marks
            try:
                spark.createDataFrame([], schema).selectExpr(gone)
            except Exception as error:
                # Spark's own errors cannot be named here: reading a spec needs no Spark.
                if not (said := condition(error)):
                    raise
                raise NotReady(
                    f"{field} of {self._sink.target()} is no condition over the query's columns ({said})",
                    f"correct it; the columns are {', '.join(schema.names)}",
                ) from error
        found = look(spark, self._sink)
        if found.version >= 0:
            fit(found, self._sink, self._sink.held_columns(schema.names))
        self._exists = found.version >= 0
        self._last, self._known = found.batch(self.identity.key), True

    def remembered(self, spark: SparkSession) -> tuple[Entry, ...]:
        """What the table's log says of this query."""
        found = look(spark, self._sink)
        return entries(spark, found, self.identity) if found.version >= 0 else ()

    def entry(self, batch_id: int) -> Entry | None:
        """What the table's log says of one batch."""
        found = look(self._session, self._sink)
        return entry(self._session, found, self.identity.key, batch_id) if found.version >= 0 else None

    def holds(self, batch_id: int) -> bool:
        """Is this batch, or a later one, in the table's log?"""
        if not self._known:
            found = look(self._session, self._sink)
            self._exists = found.version >= 0
            self._last, self._known = found.batch(self.identity.key), True
        return self._last is not None and batch_id <= self._last

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Commit one batch, or nothing. Rows are counted where they are merged.

        A batch without rows is not merged: after each move of the watermark Spark runs one, and a replay of it
        has no rows either.

        Raises `MillstreamError` when the rows are refused, `Outage` when other writers win again and again.
        """
        rows = frame.count() if self._merges else None
        for attempt in range(ATTEMPTS):
            if self.holds(batch_id):
                return Written(rows=0, skipped=True)
            if rows == 0 and self._exists:
                return Written(rows=0)
            try:
                if self._changes:
                    self._changes.keep_deletions(frame)
                reach("delta.before")
                self._commit(frame, batch_id)
                reach("delta.committed")
            except Exception as error:
                # Of any failure, known or not, it is unsaid whether the commit took place: the log is asked again.
                self._known = False
                if of_another_writer(condition(error)) and attempt + 1 < ATTEMPTS:
                    time.sleep(FIRST_WAIT * 2**attempt * (0.5 + random.random()))  # noqa: S311 - spreads retries
                    continue
                known = explain(error, self._sink)
                if known is None:
                    raise
                raise known from error
            self._own(batch_id)
            self._last, self._exists = batch_id, True
            break
        return Written(rows=rows)

    def _own(self, batch_id: int) -> None:
        """Raises `Unfit` when Delta passed the write over: another run had this number for other records."""
        note = self.note(batch_id)
        if note.planned is None:
            return
        there = entry(self._session, glance(self._session, self._sink), self.identity.key, batch_id, NEAR)
        if there is not None and there.note.contradicts(note):
            raise contested(self.identity, batch_id)

    @property
    def _merges(self) -> bool:
        keyed = bool(self._sink.row_key) and self.identity.mode is not OutputMode.COMPLETE
        return keyed and self._sink.replaced is None

    def _commit(self, frame: DataFrame, batch_id: int) -> None:
        """One attempt."""
        marks = {
            "txnAppId": self.identity.key,
            "txnVersion": str(batch_id),
            "userMetadata": self._said(batch_id),
        }
        if self._sink.replaced is not None and self._exists:
            self._replace(frame, batch_id, marks, self._sink.replaced)
        elif self.identity.mode is OutputMode.COMPLETE:
            self._save(frame, "overwrite", marks)
        elif self._changes:
            self._change(self._changes, frame, batch_id, marks)
        elif not self._sink.merge_on:
            self._append(frame, marks)
        else:
            with self._single(frame, batch_id) as source:
                if self._exists:
                    self._merge(frame.sparkSession, source, frame.columns, batch_id)
                else:
                    # No key can match in a table that is not there: every row is added, by the commit that
                    # makes it. Of two writers that make it at once one conflicts, and then merges.
                    added = frame.sparkSession.sql(source)
                    if self._sink.delete_when is not None:
                        added = added.where(f"NOT {self._gone}")
                    self._save(added, "append", marks)

    def _append(self, frame: DataFrame, marks: dict[str, str]) -> None:
        """Add the rows, the cheaper way where the table is a folder whose log tells this writer's last number."""
        if self._exists and self._sink.path is not None:
            more = {"mergeSchema": "true"} if self._sink.merge_schema else {}
            numbered = NumberedAppend(frame, str(self._sink.path), {**marks, **more})
            if numbered.last() is not None:
                numbered.commit()
                return
        self._save(frame, "append", marks)

    def _save(self, frame: DataFrame, mode: str, options: dict[str, str]) -> None:
        """Append to the table or replace its rows; make it if need be."""
        writer = frame.write.format("delta").mode(mode).options(**options)
        # Delta changes no schema while it replaces a part of a table.
        if self._sink.merge_schema and "replaceWhere" not in options:
            writer = writer.option("overwriteSchema" if mode == "overwrite" else "mergeSchema", "true")
        if not self._exists:
            writer = writer.options(**self._sink.properties)
            if self._sink.partition_by:
                writer = writer.partitionBy(*self._sink.partition_by)
        if self._sink.path is not None:
            writer.save(str(self._sink.path))
        else:
            assert self._sink.table is not None
            writer.saveAsTable(self._sink.table)

    def _replace(self, frame: DataFrame, batch_id: int, marks: dict[str, str], cut: Cut) -> None:
        """Put the rows in the place of those of a cut."""
        options = {**marks, "replaceWhere": cut.sql()}
        if not self._sink.merge_on:
            self._save(frame, "overwrite", options)
            return
        with self._single(frame, batch_id) as source:
            self._save(frame.sparkSession.sql(source), "overwrite", options)

    def _change(self, changes: Changes, frame: DataFrame, batch_id: int, marks: dict[str, str]) -> None:
        """Bring the table to what follows from its changes and these."""
        if not self._exists:
            self._save(changes.first(frame), "append", marks)
            return
        with (
            changes.merging(frame, self._sink.merge_schema) as statement,
            _marked(frame.sparkSession, self._confs(batch_id)),
        ):
            frame.sparkSession.sql(statement)

    @contextmanager
    def _single(self, frame: DataFrame, batch_id: int) -> Iterator[str]:
        """SQL for the batch's rows, failing at a key that comes twice; good inside the `with` only."""
        view = f"millstream_{self.identity.query_id}_{batch_id}".replace("-", "_")
        frame.createOrReplaceTempView(view)
        try:
            yield once(view, [quoted(name) for name in self._sink.merge_on], frame.columns)
        finally:
            frame.sparkSession.catalog.dropTempView(view)

    def _merge(self, spark: SparkSession, source: str, columns: list[str], batch_id: int) -> None:
        """Replace or remove rows by key and add the rest."""
        evolve = "WITH SCHEMA EVOLUTION " if self._sink.merge_schema else ""
        same = " AND ".join(f"held.{quoted(key)} <=> come.{quoted(key)}" for key in self._sink.merge_on)
        what = " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        if self._sink.delete_when is not None:
            # Told apart where no name means two tables. `*` would take the mark for a column of the table.
            source = f"SELECT *, {self._gone} AS `{GONE}` FROM ({source})"  # noqa: S608 - names are quoted
            names = [quoted(name) for name in columns]
            what = (
                f" WHEN MATCHED AND come.`{GONE}` THEN DELETE"  # noqa: S608 - names are quoted
                f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = come.{name}' for name in names)}"
                f" WHEN NOT MATCHED AND NOT come.`{GONE}` THEN INSERT ({', '.join(names)})"
                f" VALUES ({', '.join(f'come.{name}' for name in names)})"
            )
        with _marked(spark, self._confs(batch_id)):
            spark.sql(
                f"MERGE {evolve}INTO {self._sink.place} AS held USING ({source}) AS come ON {same}{what}"
            )

    @property
    def _gone(self) -> str:
        """The condition by which a row removes another; unknown is no."""
        return self._sink.marks[1] if self._sink.marks else "false"

    def _confs(self, batch_id: int) -> dict[str, str]:
        """What a statement takes from the session that a write takes as options."""
        return {_APP: self.identity.key, _BATCH: str(batch_id), _NOTE: self._said(batch_id)}

    def _said(self, batch_id: int) -> str:
        """What the table's history shows beside each commit."""
        identity, note = self.identity, self.note(batch_id)
        if not self._merges:
            # Told to Delta before the rows pass, which only a merge has run once already.
            note = replace(note, content=None)
        whose = {"pipeline": identity.pipeline, "query": identity.query, "writer": identity.key}
        return json.dumps({**whose, "batch_id": batch_id, **note.plain()})

    @property
    def _session(self) -> SparkSession:
        assert self._spark is not None, "used before open"
        return self._spark


def once(view: str, keys: list[str], columns: list[str]) -> str:
    """The rows of a batch, failing at a key that comes twice.

    MERGE itself refuses such a key only when the table holds it; otherwise it would add both rows.
    """
    key = ", ".join(keys)
    shown = f"to_json(struct({key}))"
    return (
        f"SELECT {', '.join(quoted(name) for name in columns)} FROM"  # noqa: S608 - names are quoted
        f" (SELECT *, count(*) OVER (PARTITION BY {key}) AS `__same_key` FROM {view})"
        " WHERE if(`__same_key` = 1, true,"
        f" CAST(raise_error(concat('same key twice: ', {shown})) AS BOOLEAN))"
    )


@contextmanager
def _marked(spark: SparkSession, confs: dict[str, str]) -> Iterator[None]:
    """Session settings for one statement. A leaked batch number would turn later writes into nothing."""
    before: dict[str, Any] = {name: spark.conf.get(name, None) for name in confs}
    try:
        for name, value in confs.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            if value is None or name in (_APP, _BATCH):
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
