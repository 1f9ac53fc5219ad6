"""Maintain the table of a sink, which may have been created, and may be written to, by others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import DeltaTable

from millstream.connectors.delta.commit.delta_rs_paths import is_misread
from millstream.connectors.delta.commit.log import cached_snapshot, table_lock
from millstream.connectors.delta.commit.maintenance import (
    DAY,
    FILE_RETENTION,
    SHORT_HISTORY,
    TableMaintenance,
    is_due,
)
from millstream.connectors.delta.commit.small_merge import exact_bounds, layout_unfitness
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.connectors.delta.sink import DeltaSink


DELTA_HISTORY = {FILE_RETENTION: "interval 7 days"}
"""Delta's own default; written down, it lets the maintenance delete older files."""


class SinkMaintenance:
    """Maintains the table of one sink, if it is in a local folder and the spec does not say `maintain: false`."""

    def __init__(self, sink: DeltaSink, mode: OutputMode) -> None:
        self._sink = sink
        self._replaces_files = bool(sink.row_key) or mode is OutputMode.COMPLETE
        self._folder = None if sink.path is None else sink.path.local
        self.table: TableMaintenance | None = None
        is_local = self._folder is not None and not is_misread(self._folder)
        if sink.maintain and self._folder is not None and is_local and sink.replaced is None:
            # An append writes its files without the lock, in less than a day.
            self.table = TableMaintenance(self._folder, least_age=0.0 if self._replaces_files else DAY)

    @property
    def creation_properties(self) -> dict[str, str]:
        """The properties of a table that the sink creates: those of the spec, and how long it keeps old files."""
        properties = self._sink.properties
        if self.table is None:
            return properties
        names = {name.lower() for name in properties}
        history = SHORT_HISTORY if self._replaces_files else DELTA_HISTORY
        return {name: value for name, value in history.items() if name.lower() not in names} | properties

    def after_spark(self, spark: SparkSession) -> None:
        """Maintain the table after a commit of Spark, if it is due and delta-rs may write files of the table.

        If delta-rs cannot read the table, that is logged.
        """
        if self.table is None or not is_due(cached_snapshot(spark, self._sink).version):
            return
        with table_lock(spark, self._sink), self.table.logging_failures():
            table = DeltaTable(str(self._folder))
            if not layout_unfitness(table):
                self.table.run(table, exact_bounds(table))
