"""Merge changes into a Delta table: the latest state of each key, or its whole history."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.connectors.api.cdc import END, GONE, START, content_expression
from millstream.connectors.api.ddl import empty_text_as_null, quote_name
from millstream.connectors.delta.commit.log import read_snapshot, table_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.api.cdc import Cdc
    from millstream.connectors.delta.sink import DeltaSink

_UNTIL = "__until"
"""Column in a merge's source with the greatest sequence at which the key was deleted."""


class ChangeBatch:
    """Computes the effect of a batch of changes on a table.

    Deletions are stored in a separate table, so that a change that arrives after a newer deletion finds it. They are
    stored before the batch's commit, and only added or raised. If the batch is repeated, or the run dies between the
    two commits, later batches bring the table to the same state.
    """

    def __init__(self, sink: DeltaSink, cdc: Cdc) -> None:
        self._sink, self._cdc = sink, cdc
        self._place, self._deletions = sink.place, sink.deletions.place
        self._keys = [quote_name(name) for name in cdc.keys]
        self._sequence = quote_name(cdc.sequence_by)
        self._deletions_exist = False
        self._deletions_fit = False
        self.partition_columns: tuple[str, ...] = ()
        """Those of the table."""

    def drop_deletions(self, spark: SparkSession) -> None:
        """Drop the deletions of a catalog table that was dropped: they say nothing about the rows of the new one.

        A table in a folder has its deletions in that folder.
        """
        if self._sink.deletions.path is None:
            spark.sql(f"DROP TABLE IF EXISTS {self._deletions}")

    def keep_deletions(self, frame: DataFrame) -> None:
        """Store the deletions of a batch, if it has any."""
        deletions = self._stored_changes(frame).where(GONE)
        if deletions.isEmpty():
            return
        deletions = self._cdc.chained(deletions) if self._cdc.has_history else self._cdc.newest(deletions)
        deletions = deletions.selectExpr(*self._keys, self._sequence)
        spark = frame.sparkSession
        if not self._has_deletions(spark):
            with table_lock(spark, self._sink.deletions):
                self._write_deletions(deletions.limit(0), "append")
        elif not self._deletions_fit:
            self._widen_deletions(deletions.limit(0))
        self._deletions_fit = True
        same_key = _same_key(
            "held", "come", [*self._keys, *([self._sequence] if self._cdc.has_history else [])]
        )
        later = f"come.{self._sequence} > held.{self._sequence}"
        update_clause = "" if self._cdc.has_history else f" WHEN MATCHED AND {later} THEN UPDATE SET *"
        with _temporary_view(deletions, "gone") as view, table_lock(spark, self._sink.deletions):
            spark.sql(
                f"MERGE INTO {self._deletions} AS held USING {view} AS come ON {same_key}{update_clause}"
                " WHEN NOT MATCHED THEN INSERT *"
            )

    def _widen_deletions(self, empty: DataFrame) -> None:
        """Give the table of deletions types for the columns of `empty`, too, if the query's have become wider.

        Otherwise a deletion of a wider key would be rounded to the old type, and hide no row, or not be stored.
        """
        rows = empty.sparkSession.table(self._deletions)
        wider_rows = rows.unionByName(empty)
        if wider_rows.dtypes != rows.dtypes:
            with table_lock(empty.sparkSession, self._sink.deletions):
                self._write_deletions(wider_rows, "overwrite")

    def _write_deletions(self, rows: DataFrame, mode: str) -> None:
        """Write the table of deletions, whose columns are those of the rows, and create it if it is missing."""
        writer, target = rows.write.format("delta").mode(mode), self._sink.deletions
        if mode == "overwrite":
            writer = writer.option("overwriteSchema", "true")
        if target.path is not None:
            writer.save(str(target.path))
        else:
            writer.saveAsTable(str(target.table))

    def first(self, frame: DataFrame) -> DataFrame:
        """Return the rows of the table that this batch creates."""
        with self._source(frame, None) as source:
            columns = self._sink.table_columns(frame.columns)
            # Read while the views exist; Spark has resolved their names by then.
            return frame.sparkSession.sql(source).where(f"NOT {GONE}").selectExpr(*map(quote_name, columns))

    @contextmanager
    def merging(self, frame: DataFrame, evolve: bool) -> Iterator[str]:
        """Yield the MERGE statement of a batch; valid only inside the `with`."""
        spark = frame.sparkSession
        table = spark.table(self._place)
        table_columns = {name.lower() for name in table.columns}
        names = [quote_name(name) for name in self._sink.table_columns(frame.columns)]
        common = [name for name in self._cdc.takes(frame.columns) if name.lower() in table_columns]
        new_content, old_content = content_expression(common, "come"), content_expression(common, "held")
        if self._cdc.has_history:
            same_key = _same_key("held", "come", [*self._keys, START])
            delete_condition = f"come.{GONE}"
            update_condition = f"NOT (held.{END} <=> come.{END} AND {new_content} = {old_content})"
        else:
            same_key = _same_key("held", "come", self._keys)
            old_sequence, new_sequence = f"held.{self._sequence}", f"come.{self._sequence}"
            delete_condition = f"come.{GONE} AND {old_sequence} <= come.{_UNTIL}"
            update_condition = (
                f"NOT come.{GONE} AND ({new_sequence} > {old_sequence}"
                f" OR ({new_sequence} = {old_sequence} AND {new_content} > {old_content}))"
            )
        with self._source(frame, table) as source:
            yield (
                f"MERGE {'WITH SCHEMA EVOLUTION ' if evolve else ''}INTO {self._place} AS held"  # noqa: S608 - as above
                f" USING ({source}) AS come ON {same_key}"
                f" WHEN MATCHED AND {delete_condition} THEN DELETE"
                f" WHEN MATCHED AND {update_condition} THEN UPDATE SET"
                f" {', '.join(f'{name} = come.{name}' for name in names)}"
                f" WHEN NOT MATCHED AND NOT come.{GONE} THEN INSERT ({', '.join(names)})"
                f" VALUES ({', '.join(f'come.{name}' for name in names)})"
            )

    @contextmanager
    def _source(self, frame: DataFrame, table: DataFrame | None) -> Iterator[str]:
        """Yield SQL for a merge's rows, including deletions; `table` is None before it exists."""
        changes = self._stored_changes(frame)
        compute = self._history if self._cdc.has_history else self._latest
        with _temporary_view(compute(changes, table), "come") as view:
            yield f"SELECT * FROM {view}"  # noqa: S608 - our own name

    def _stored_changes(self, frame: DataFrame) -> DataFrame:
        """Return the changes with their values as the table has them."""
        changes = self._cdc.changes(frame)
        stored = empty_text_as_null(changes.schema, self.partition_columns)
        if not stored:
            return changes
        return changes.selectExpr(
            *(f"{stored.get(name, quote_name(name))} AS {quote_name(name)}" for name in changes.columns)
        )

    def _latest(self, changes: DataFrame, table: DataFrame | None) -> DataFrame:  # noqa: ARG002 - as `_history`
        """Return the newest change of each key, marked as deleted if a deletion is at least as new."""
        newest = self._cdc.newest(changes)
        spark = changes.sparkSession
        if not self._has_deletions(spark):
            return newest.selectExpr("*", f"{self._sequence} AS {_UNTIL}")
        columns = [f"come.{quote_name(name)}" for name in newest.columns if name != GONE]
        deleted_until = f"deleted.{self._sequence}"
        with _temporary_view(newest, "newest") as view:
            return spark.sql(
                f"SELECT {', '.join(columns)}, {deleted_until} AS {_UNTIL},"  # noqa: S608 - as above
                f" come.{GONE} OR coalesce(come.{self._sequence} <= {deleted_until}, false) AS {GONE}"
                f" FROM {view} AS come LEFT JOIN {self._deletions} AS deleted"
                f" ON {_same_key('come', 'deleted', self._keys)}"
            )

    def _history(self, changes: DataFrame, table: DataFrame | None) -> DataFrame:
        """Return the keys' whole history: their changes in the batch and the table, and all deletions, in order."""
        spark = changes.sparkSession
        names = [name for name in changes.columns if name != GONE]
        events = changes
        with _temporary_view(changes, "changes") as view:
            keys = f"(SELECT {', '.join(self._keys)} FROM {view})"  # noqa: S608 - as above
            join = f"LEFT SEMI JOIN {keys} AS come ON {_same_key('held', 'come', self._keys)}"
            if table is not None:
                events = events.unionByName(
                    self._events(self._place, table.columns, join, names, changes, "false")
                )
            if self._has_deletions(spark):
                columns = [*self._cdc.keys, self._cdc.sequence_by]
                events = events.unionByName(
                    self._events(self._deletions, columns, join, names, changes, "true")
                )
        return self._cdc.chained(events)

    def _events(
        self,
        place: str,
        available: list[str],
        join: str,
        names: list[str],
        changes: DataFrame,
        is_deletion: str,
    ) -> DataFrame:
        """Return rows of one of our tables as changes; missing columns are null."""
        lower = {name.lower() for name in available}
        columns = [
            f"held.{quote_name(name)} AS {quote_name(name)}"
            if name.lower() in lower
            else f"CAST(NULL AS {changes.schema[name].dataType.simpleString()}) AS {quote_name(name)}"
            for name in names
        ]
        return changes.sparkSession.sql(
            f"SELECT {', '.join(columns)}, {is_deletion} AS {GONE} FROM {place} AS held {join}"  # noqa: S608 - as above
        )

    def _has_deletions(self, spark: SparkSession) -> bool:
        """Return whether the table of deletions exists. Only `drop_deletions` drops it."""
        self._deletions_exist = (
            self._deletions_exist or read_snapshot(spark, self._sink.deletions).version >= 0
        )
        return self._deletions_exist


def _same_key(left: str, right: str, names: list[str]) -> str:
    """Return the condition that two rows have the same key; null equals null."""
    return " AND ".join(f"{left}.{name} <=> {right}.{name}" for name in names)


@contextmanager
def _temporary_view(frame: DataFrame, name: str) -> Iterator[str]:
    """Yield the name of a temporary view of a frame; valid only inside the `with`."""
    view = f"millstream_{name}_{id(frame)}"
    frame.createOrReplaceTempView(view)
    try:
        yield view
    finally:
        frame.sparkSession.catalog.dropTempView(view)
