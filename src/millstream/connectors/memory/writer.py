"""Keeps the rows of batches in the driver, and gives Spark a view of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.memory import tables
from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.spec.mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.connectors.memory.sink import MemorySink


class MemoryWriter(Writer):
    """Collects each batch. A batch that comes again in the same process is passed over."""

    def __init__(self, sink: MemorySink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink

    def holds(self, batch_id: int) -> bool:
        """Has this process the batch, or a later one?"""
        last = tables.last(self.sink.table, self.identity.key)
        return last is not None and batch_id <= last

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Collect one batch and renew the view."""
        if self.holds(batch_id):
            return Written(skipped=True)
        rows = frame.toArrow()
        alone = self.identity.mode is OutputMode.COMPLETE
        tables.keep(self.sink.table, self.identity.key, batch_id, rows, alone=alone)
        held = frame.sparkSession.createDataFrame(tables.held(self.sink.table), frame.schema)
        held.createOrReplaceGlobalTempView(self.sink.table)
        return Written(rows.num_rows)
