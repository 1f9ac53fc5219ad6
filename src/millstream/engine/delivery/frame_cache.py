"""Cache a batch's rows for a second read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# More partitions than any batch has, so that the coalesce merges none.
_MANY_PARTITIONS = 1 << 20


def persisted(frame: DataFrame) -> DataFrame:
    """Return the same rows, cached. The caller frees them with `unpersist`.

    Spark 4.2 cannot read back the cache of a streaming aggregate whose rows are sorted, as with `max` of a string: it
    looks for the sort columns among the others and fails with `key not found`. After a coalesce, which moves nothing
    here, Spark no longer knows of an order.
    """
    return frame.coalesce(_MANY_PARTITIONS).persist()
