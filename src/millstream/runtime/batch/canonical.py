"""Rows in words that do not depend on where they were kept, so that they can be compared."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

Rows = Counter[tuple[str | None, ...]]


def counted(frame: DataFrame, names: Sequence[str], schema: StructType) -> Rows:
    """The rows of a frame as texts, with how often each is there; columns in the order of `names`.

    Every row comes to the driver: for inputs of a test or a proof, not for a table.
    """
    columns = [canonical(schema[name]).alias(f"c{at}") for at, name in enumerate(names)]
    return Counter(tuple(row) for row in frame.select(*columns).collect())


def canonical(field: StructField) -> Column:
    """A column's value as text, the same wherever it was kept; NULL stays NULL. Fractions to ten digits."""
    column = F.col(f"`{field.name.replace('`', '``')}`").cast(field.dataType)
    if isinstance(field.dataType, DoubleType | FloatType):
        # Sums differ in their last digits by the order in which they were added up.
        return F.format_string("%.9e", column.cast("double"))
    if isinstance(field.dataType, ArrayType | MapType | StructType):
        return F.to_json(column, {"ignoreNullFields": "false"})
    return column.cast("string")
