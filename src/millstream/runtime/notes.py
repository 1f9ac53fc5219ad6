"""What sinks are to remember of each batch: where its sources ended, and what its rows add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from millstream.connectors.remembered import UNTOLD, Note
from millstream.diagnostics.failure import CannotGoOn
from millstream.runtime.progress import ROWS_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column
    from pyspark.sql.types import StructType

    from millstream.checkpoint.folder import Checkpoint

CONTENT = "content"
"""The field of the metric of rows that has their sum."""
# Spark's hash functions refuse them: equal maps may have their entries in another order, equal variants other bytes.
_UNHASHED = ("map<", "variant")


class Notes:
    """The notes of one query, from its checkpoint and from the figures of the batch that runs."""

    content = False
    """Are the query's rows summed? See `counted`."""

    def __init__(self, checkpoint: Checkpoint, query_id: str) -> None:
        self._checkpoint, self._query_id = checkpoint, query_id
        self._read: tuple[int, Note] | None = None
        self._running: tuple[int, Any] | None = None

    def running(self, batch_id: int, handle: Any) -> None:
        """A batch begins; `handle` is Spark's StreamExecution, whose figures it fills."""
        self._running = batch_id, handle

    def __call__(self, batch_id: int) -> Note:
        """The note of a batch. Its content is right once its rows have passed, all of them and once.

        Of a batch whose offsets are not kept any more, or of another checkpoint, nothing is told.
        """
        planned = self.planned(batch_id)
        return Note(planned.offsets, planned.planned, self._sum(batch_id))

    def planned(self, batch_id: int) -> Note:
        """The note without its content, as the checkpoint has it."""
        if self._read is None or self._read[0] != batch_id:
            self._read = batch_id, self._offsets(batch_id)
        return self._read[1]

    def _offsets(self, batch_id: int) -> Note:
        try:
            if self._checkpoint.query_id() != self._query_id:
                return UNTOLD
            found = self._checkpoint.offsets(batch_id)
        except CannotGoOn:
            # A torn file is told of where checkpoints are looked over, and not while a sink writes its account.
            return UNTOLD
        return UNTOLD if found is None else Note(found.sources, found.timestamp)

    def passed(self, batch_id: int) -> int:
        """How many rows of the batch that runs have passed."""
        row = self._figures(batch_id)
        return 0 if row is None else int(row.getAs("rows") or 0)

    def _sum(self, batch_id: int) -> str | None:
        row = self._figures(batch_id) if self.content else None
        return None if row is None else f"{int(row.getAs('rows') or 0)}:{int(row.getAs(CONTENT) or 0)}"

    def _figures(self, batch_id: int) -> Any:
        """Spark's row of the metric of rows, or None."""
        if self._running is None or self._running[0] != batch_id:
            return None
        found = self._running[1].lastExecution().observedMetrics().get(ROWS_OUT)
        return None if found.isEmpty() else found.get()


def counted(schema: StructType, *, content: bool) -> list[Column]:
    """The figures of the metric of rows: how many, and a sum over a hash of each that no order changes.

    Columns of maps and variants are left out of it; None comes of rows that have no others.
    """
    rows = F.count(F.lit(1)).alias("rows")
    names = _hashed(schema)
    if not content or not names:
        return [rows]
    # The upper half of 64 bits: four billion rows of any values add up without an overflow, which would be an error.
    half = F.shiftright(F.xxhash64(*names), 32)
    return [rows, F.sum(half).alias(CONTENT)]


def _hashed(schema: StructType) -> Sequence[Column]:
    return [
        F.col(f"`{field.name.replace('`', '``')}`")
        for field in schema
        if not any(kind in field.dataType.simpleString() for kind in _UNHASHED)
    ]
