"""The `foreachBatch` callback of one query start, which can be detached when the query ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


@dataclass
class ForeachBatchCallback:
    """A `foreachBatch` function around another one.

    The JVM's query references the function, and a function that knows its query references Python's handle of it.
    Neither garbage collector sees this cycle through both processes. Unless the callback is detached, each start
    leaks all that Spark planned for it, 2 MB of heap for the smallest query.
    """

    deliver: Callable[[DataFrame, int], None] | None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Pass a batch on. Raises if detached, because Spark must not commit a batch that was not delivered."""
        if self.deliver is None:
            raise RuntimeError(f"batch {batch_id} came after its query was closed")
        self.deliver(rows, batch_id)

    def detach(self) -> None:
        """Break the cycle, when the query has ended or its function will not be called again."""
        self.deliver = None
