"""Format rows as text that does not depend on where they are stored, so that they can be compared."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StructType

from millstream.connectors.api.ddl import quote_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

Rows = Counter[tuple[str | None, ...]]


def count_rows(frame: DataFrame, names: Sequence[str], schema: StructType) -> Rows:
    """Return the rows of a frame as texts, with the count of each. Columns are in the order of `names`.

    Every row is collected to the driver, which suits the input of a test or a proof but not a table.
    """
    columns = [canonical_text(schema[name]).alias(f"c{index}") for index, name in enumerate(names)]
    return Counter(tuple(row) for row in frame.select(*columns).collect())


def canonical_text(field: StructField) -> Column:
    """Return a column's value as text, the same wherever it is stored. NULL stays NULL. Fractions have ten digits."""
    column = F.col(quote_name(field.name)).cast(field.dataType)
    if isinstance(field.dataType, DoubleType | FloatType):
        # The last digits of a sum depend on the order of addition.
        return F.format_string("%.9e", column.cast("double"))
    if isinstance(field.dataType, ArrayType | MapType | StructType):
        return F.to_json(column, {"ignoreNullFields": "false"})
    return column.cast("string")
