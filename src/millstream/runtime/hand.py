"""What Spark hands the batches of one start to, and which can be let go of when it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


@dataclass
class Hand:
    """A `foreachBatch` function around another one.

    The JVM's query holds the function, and a function that knows its query holds Python's handle of it: a ring
    through both processes that neither collector sees. Never let go, each start would keep all that Spark planned
    for it, 2 MB of heap for the smallest query.
    """

    deliver: Callable[[DataFrame, int], None] | None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Pass a batch on. Raises when it was let go: Spark must not commit a batch that nobody delivered."""
        if self.deliver is None:
            raise RuntimeError(f"batch {batch_id} came after its query was closed")
        self.deliver(rows, batch_id)

    def let_go(self) -> None:
        """Break the ring: the query has ended, or its function will not be called again."""
        self.deliver = None
