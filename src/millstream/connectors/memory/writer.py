"""Store the rows of batches in the driver, and show them to Spark as a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.batch_ledger import LedgerEntry
from millstream.connectors.api.writer import SinkIdentity, Writer, WriteResult
from millstream.connectors.memory import tables
from millstream.spec.output_mode import OutputMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.connectors.memory.sink import MemorySink


class MemoryWriter(Writer):
    """Collects each batch. A batch that is repeated in the same process is skipped."""

    def __init__(self, sink: MemorySink, identity: SinkIdentity) -> None:
        super().__init__(identity)
        self.sink = sink

    def has_batch(self, batch_id: int) -> bool:
        """Return whether this process has the batch or a later one."""
        last = tables.last_batch(self.sink.table, self.identity.key)
        return last is not None and batch_id <= last

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the entry of the newest batch; earlier ones are not stored."""
        last = tables.last_batch(self.sink.table, self.identity.key)
        return LedgerEntry(self.identity.key, batch_id) if last == batch_id else None

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Collect one batch and update the view."""
        if self.has_batch(batch_id):
            return WriteResult(is_skipped=True)
        rows = frame.toArrow()
        alone = self.identity.mode is OutputMode.COMPLETE
        tables.store_batch(self.sink.table, self.identity.key, batch_id, rows, alone=alone)
        view = frame.sparkSession.createDataFrame(tables.read_table(self.sink.table), frame.schema)
        view.createOrReplaceGlobalTempView(self.sink.table)
        return WriteResult(rows.num_rows)
