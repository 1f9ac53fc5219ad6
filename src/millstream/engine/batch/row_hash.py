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
    from pyspark.sql.types import DataType, StructField

Rows = Counter[tuple[str | None, ...]]


def count_rows(frame: DataFrame, names: Sequence[str], schema: StructType) -> Rows:
    """Return the rows of a frame as texts, with the count of each. Columns are in the order of `names`.

    Every row is collected to the driver, which suits the input of a test or a proof but not a table.
    """
    columns = [canonical_text(schema[name]).alias(f"c{index}") for index, name in enumerate(names)]
    return Counter(tuple(row) for row in frame.select(*columns).collect())


def canonical_text(field: StructField, value: str | None = None) -> Column:
    """Return a column's value as text, the same wherever it is stored. NULL stays NULL. Fractions have ten digits.

    `value` is Spark SQL for the value, by default that of the column.
    """
    column = F.expr(value or quote_name(field.name)).cast(field.dataType)
    if isinstance(field.dataType, DoubleType | FloatType):
        # The last digits of a sum depend on the order of addition.
        return F.format_string("%.9e", column.cast("double"))
    if isinstance(field.dataType, ArrayType | MapType | StructType):
        return F.to_json(_with_sorted_maps(column, field.dataType), {"ignoreNullFields": "false"})
    return column.cast("string")


def _with_sorted_maps(column: Column, kind: DataType) -> Column:
    """Sort the keys of every map in a value, because a store may return them in any order."""
    if "map<" not in kind.simpleString():
        return column
    match kind:
        case ArrayType(elementType=inner):
            return F.transform(column, lambda element: _with_sorted_maps(element, inner))
        case MapType(valueType=inner):
            keys = F.array_sort(F.map_keys(column))
            values = F.transform(keys, lambda key: _with_sorted_maps(F.element_at(column, key), inner))
            return F.map_from_arrays(keys, values)
        case StructType(fields=fields):
            columns = [
                _with_sorted_maps(column[field.name], field.dataType).alias(field.name) for field in fields
            ]
            return F.when(column.isNotNull(), F.struct(*columns))
        case _:
            return column
