"""Merges changes into a Delta table: the newest of each key, or all with the times between which they hold."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.connectors.cdc import END, GONE, START, content
from millstream.connectors.ddl import quoted
from millstream.connectors.delta.log import look

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from millstream.connectors.cdc import Cdc
    from millstream.connectors.delta.sink import DeltaSink

_UNTIL = "__until"
"""The greatest sequence at which a key was deleted, in the source of a merge."""


class Changes:
    """What a batch of changes makes of a table.

    Deletions are kept in a table of their own, so that a change which comes after a newer deletion finds it. They are
    kept before the batch's commit, and only added to or raised: whoever runs the batch again, or dies between the
    two, leaves a table that later batches bring to the same state.
    """

    def __init__(self, sink: DeltaSink, cdc: Cdc) -> None:
        self._sink, self._cdc = sink, cdc
        self._place, self._deletions = sink.place, sink.deletions.place
        self._keys = [quoted(name) for name in cdc.keys]
        self._sequence = quoted(cdc.sequence_by)
        self._there = False

    def keep_deletions(self, frame: DataFrame) -> None:
        """Remember the deletions of a batch; nothing where it has none."""
        gone = self._cdc.changes(frame).where(GONE)
        if gone.isEmpty():
            return
        gone = self._cdc.chained(gone) if self._cdc.history else self._cdc.newest(gone)
        gone = gone.selectExpr(*self._keys, self._sequence)
        spark = frame.sparkSession
        if not self._remembers(spark):
            self._make(gone.limit(0))
        same = _same("held", "come", [*self._keys, *([self._sequence] if self._cdc.history else [])])
        later = f"come.{self._sequence} > held.{self._sequence}"
        raised = "" if self._cdc.history else f" WHEN MATCHED AND {later} THEN UPDATE SET *"
        with _seen(gone, "gone") as view:
            spark.sql(
                f"MERGE INTO {self._deletions} AS held USING {view} AS come ON {same}{raised}"
                " WHEN NOT MATCHED THEN INSERT *"
            )

    def _make(self, empty: DataFrame) -> None:
        """Make the table of deletions."""
        writer, beside = empty.write.format("delta").mode("append"), self._sink.deletions
        if beside.path is not None:
            writer.save(str(beside.path))
        else:
            writer.saveAsTable(str(beside.table))

    def first(self, frame: DataFrame) -> DataFrame:
        """The rows of the table that a batch makes."""
        with self._source(frame, None) as source:
            columns = self._sink.held_columns(frame.columns)
            # Read while its views are there; Spark has resolved their names by then.
            return frame.sparkSession.sql(source).where(f"NOT {GONE}").selectExpr(*map(quoted, columns))

    @contextmanager
    def merging(self, frame: DataFrame, evolve: bool) -> Iterator[str]:
        """The MERGE of a batch; good inside the `with` only."""
        spark = frame.sparkSession
        table = spark.table(self._place)
        held = {name.lower() for name in table.columns}
        names = [quoted(name) for name in self._sink.held_columns(frame.columns)]
        both = [name for name in self._cdc.takes(frame.columns) if name.lower() in held]
        mine, theirs = content(both, "come"), content(both, "held")
        if self._cdc.history:
            same = _same("held", "come", [*self._keys, START])
            removed = f"come.{GONE}"
            replaced = f"NOT (held.{END} <=> come.{END} AND {mine} = {theirs})"
        else:
            same = _same("held", "come", self._keys)
            here, there = f"held.{self._sequence}", f"come.{self._sequence}"
            removed = f"come.{GONE} AND {here} <= come.{_UNTIL}"
            replaced = f"NOT come.{GONE} AND ({there} > {here} OR ({there} = {here} AND {mine} > {theirs}))"
        with self._source(frame, table) as source:
            yield (
                f"MERGE {'WITH SCHEMA EVOLUTION ' if evolve else ''}INTO {self._place} AS held"  # noqa: S608 - as above
                f" USING ({source}) AS come ON {same}"
                f" WHEN MATCHED AND {removed} THEN DELETE"
                f" WHEN MATCHED AND {replaced} THEN UPDATE SET {', '.join(f'{one} = come.{one}' for one in names)}"
                f" WHEN NOT MATCHED AND NOT come.{GONE} THEN INSERT ({', '.join(names)})"
                f" VALUES ({', '.join(f'come.{one}' for one in names)})"
            )

    @contextmanager
    def _source(self, frame: DataFrame, table: DataFrame | None) -> Iterator[str]:
        """SQL for the rows that a merge brings, deletions among them; `table` is None before it is made."""
        changes = self._cdc.changes(frame)
        make = self._history if self._cdc.history else self._latest
        with _seen(make(changes, table), "come") as view:
            yield f"SELECT * FROM {view}"  # noqa: S608 - a name of ours

    def _latest(self, changes: DataFrame, table: DataFrame | None) -> DataFrame:  # noqa: ARG002 - as `_history`
        """The newest change of each key, deleted where a deletion is as new."""
        newest = self._cdc.newest(changes)
        spark = changes.sparkSession
        if not self._remembers(spark):
            return newest.selectExpr("*", f"{self._sequence} AS {_UNTIL}")
        columns = [f"come.{quoted(name)}" for name in newest.columns if name != GONE]
        until = f"gone.{self._sequence}"
        with _seen(newest, "newest") as view:
            return spark.sql(
                f"SELECT {', '.join(columns)}, {until} AS {_UNTIL},"  # noqa: S608 - as above
                f" come.{GONE} OR coalesce(come.{self._sequence} <= {until}, false) AS {GONE}"
                f" FROM {view} AS come LEFT JOIN {self._deletions} AS gone ON {_same('come', 'gone', self._keys)}"
            )

    def _history(self, changes: DataFrame, table: DataFrame | None) -> DataFrame:
        """All changes of the keys that come, those that the table holds and all deletions among them, in a chain."""
        spark = changes.sparkSession
        names = [name for name in changes.columns if name != GONE]
        events = changes
        with _seen(changes, "changes") as view:
            keys = f"(SELECT {', '.join(self._keys)} FROM {view})"  # noqa: S608 - as above
            touched = f"LEFT SEMI JOIN {keys} AS come ON {_same('held', 'come', self._keys)}"
            if table is not None:
                events = events.unionByName(
                    self._events(self._place, table.columns, touched, names, changes, "false")
                )
            if self._remembers(spark):
                columns = [*self._cdc.keys, self._cdc.sequence_by]
                events = events.unionByName(
                    self._events(self._deletions, columns, touched, names, changes, "true")
                )
        return self._cdc.chained(events)

    def _events(
        self, place: str, there: list[str], touched: str, names: list[str], changes: DataFrame, gone: str
    ) -> DataFrame:
        """Rows of a table of ours as changes; a column that it lacks is null."""
        lower = {name.lower() for name in there}
        columns = [
            f"held.{quoted(name)} AS {quoted(name)}"
            if name.lower() in lower
            else f"CAST(NULL AS {changes.schema[name].dataType.simpleString()}) AS {quoted(name)}"
            for name in names
        ]
        return changes.sparkSession.sql(
            f"SELECT {', '.join(columns)}, {gone} AS {GONE} FROM {place} AS held {touched}"  # noqa: S608 - as above
        )

    def _remembers(self, spark: SparkSession) -> bool:
        """Is there a table of deletions? Once it is, it stays."""
        self._there = self._there or look(spark, self._sink.deletions).version >= 0
        return self._there


def _same(one: str, other: str, names: list[str]) -> str:
    """The condition that two rows have the same key; null equals null."""
    return " AND ".join(f"{one}.{name} <=> {other}.{name}" for name in names)


@contextmanager
def _seen(frame: DataFrame, name: str) -> Iterator[str]:
    """A name by which SQL knows a frame, inside the `with` only."""
    view = f"millstream_{name}_{id(frame)}"
    frame.createOrReplaceTempView(view)
    try:
        yield view
    finally:
        frame.sparkSession.catalog.dropTempView(view)
