"""Keep a batch's rows for whoever reads them a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# More partitions than any batch has: none is joined with another.
_ANY = 1 << 20


def kept(frame: DataFrame) -> DataFrame:
    """The same rows, cached; the caller lets go of them with `unpersist`.

    Spark 4.2 cannot read back what it cached of a streaming aggregate whose rows come sorted, as those of `max` of a
    text do: it looks for the columns of the order among the others and ends with `key not found`. After a coalesce,
    which moves nothing here, rows have no order that it knows of.
    """
    return frame.coalesce(_ANY).persist()
