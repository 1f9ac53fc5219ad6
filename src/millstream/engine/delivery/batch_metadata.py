"""Build the metadata of each batch for the sinks' ledgers: its end offsets and a checksum of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.connectors.api.batch_ledger import UNTOLD, BatchMetadata
from millstream.connectors.api.ddl import quote_name
from millstream.diagnostics.failure import CheckpointError
from millstream.engine.events.progress_listener import ROWS_OUT
from millstream.frames.decode import source_metric_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column
    from pyspark.sql.types import StructType

    from millstream.checkpoint.folder import Checkpoint

CONTENT = "content"
"""The field of the rows metric that contains the checksum."""
# Spark's hash functions reject these: equal maps may differ in the order of entries, equal variants in their bytes.
_UNHASHED = ("map<", "variant")


class BatchNotes:
    """The metadata of one query's batches, from its checkpoint and from the metrics of the running batch."""

    content = False
    """Whether the query's rows have a checksum. See `rows_metric_columns`."""
    may_count_twice: Callable[[], bool] | None = None
    """Whether the metrics of the running batch may count rows twice; None if they cannot. It then has no checksum."""

    def __init__(self, checkpoint: Checkpoint, query_id: str) -> None:
        self._checkpoint, self._query_id = checkpoint, query_id
        self._last_planned: tuple[int, BatchMetadata] | None = None
        self._running: tuple[int, Any] | None = None

    def running(self, batch_id: int, handle: Any) -> None:
        """Set the running batch. `handle` is Spark's StreamExecution, which fills its metrics."""
        self._running = batch_id, handle

    def __call__(self, batch_id: int) -> BatchMetadata:
        """Return the metadata of a batch. Its content is right once all rows have been processed, each once.

        The result is empty for another checkpoint's batch, or if the batch's offsets have been deleted.
        """
        planned = self.planned(batch_id)
        return BatchMetadata(planned.offsets, planned.planned, self._checksum(batch_id))

    def planned(self, batch_id: int) -> BatchMetadata:
        """Return the metadata without content, as the checkpoint has it."""
        if self._last_planned is None or self._last_planned[0] != batch_id:
            self._last_planned = batch_id, self._read_planned(batch_id)
        return self._last_planned[1]

    def _read_planned(self, batch_id: int) -> BatchMetadata:
        try:
            if self._checkpoint.query_id() != self._query_id:
                return UNTOLD
            planned = self._checkpoint.offsets(batch_id)
        except CheckpointError:
            # The integrity check reports a damaged file. A write to the sink does not.
            return UNTOLD
        return UNTOLD if planned is None else BatchMetadata(planned.sources, planned.timestamp)

    def passed(self, batch_id: int) -> int:
        """Return the number of rows that the running batch has processed."""
        row = self._rows_metric(batch_id)
        return 0 if row is None else int(row.getAs("rows") or 0)

    def rows_in(self, batch_id: int, sources: Sequence[str]) -> int | None:
        """Return the number of records that the running batch has read of these sources, or None if not counted."""
        metrics = [self._metric(batch_id, source_metric_name(name)) for name in sources]
        counts = [int(metric.getAs("rows") or 0) for metric in metrics if metric is not None]
        return sum(counts) if counts else None

    def _checksum(self, batch_id: int) -> str | None:
        row = self._rows_metric(batch_id) if self.content else None
        if row is not None and self.may_count_twice is not None and self.may_count_twice():
            return None
        return None if row is None else f"{int(row.getAs('rows') or 0)}:{int(row.getAs(CONTENT) or 0)}"

    def _rows_metric(self, batch_id: int) -> Any:
        """Return Spark's row of the rows metric, or None."""
        return self._metric(batch_id, ROWS_OUT)

    def _metric(self, batch_id: int, name: str) -> Any:
        """Return Spark's row of a metric of the running batch, or None."""
        if self._running is None or self._running[0] != batch_id:
            return None
        metric = self._running[1].lastExecution().observedMetrics().get(name)
        return None if metric.isEmpty() else metric.get()


def rows_metric_columns(schema: StructType, *, content: bool) -> list[Column]:
    """Return the columns of the rows metric: the number of rows, and the sum of a hash of each, in any order.

    The hash leaves out columns of maps and variants. Rows without other columns have no checksum.
    """
    rows = F.count(F.lit(1)).alias("rows")
    names = _hashable_columns(schema)
    if not content or not names:
        return [rows]
    # The upper 32 bits: sums over four billion rows of any values stay below an overflow, which would be an error.
    half = F.shiftright(F.xxhash64(*names), 32)
    return [rows, F.sum(half).alias(CONTENT)]


def _hashable_columns(schema: StructType) -> Sequence[Column]:
    return [
        F.col(quote_name(field.name))
        for field in schema
        if not any(kind in field.dataType.simpleString() for kind in _UNHASHED)
    ]
