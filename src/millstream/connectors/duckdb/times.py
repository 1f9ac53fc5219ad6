"""Convert between instants and times without a zone, in the time zone of the Spark session.

Spark compares the two in that zone. DuckDB and PySpark would convert them in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow

from millstream.connectors.api.ddl import quote_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_INSTANT = "TIMESTAMP WITH TIME ZONE"
# The type to which Spark casts a value before it is written, by its own type and that of DuckDB.
_CASTS = {
    **{
        ("timestamp", kind): "TIMESTAMP_NTZ"
        for kind in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIME")
    },
    ("timestamp", "DATE"): "DATE",
    ("timestamp_ntz", _INSTANT): "TIMESTAMP",
    ("date", _INSTANT): "TIMESTAMP",
}


def find_casts(schema: pyarrow.Schema, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types to which columns are cast before they are written, by column.

    `schema` is that of the rows in Arrow. `types` has the table's types by lower-case name.
    """
    pairs = {field.name: (_name_type(field.type), types[field.name.lower()]) for field in schema}
    return {name: _CASTS[pair] for name, pair in pairs.items() if pair in _CASTS}


def _name_type(kind: pyarrow.DataType) -> str:
    """Return Spark's name of a type of Arrow, "" if that is no time."""
    if pyarrow.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return "date" if pyarrow.types.is_date(kind) else ""


def cast_columns(frame: DataFrame, casts: Mapping[str, str]) -> DataFrame:
    """Return the frame with some columns cast to these types."""
    if not casts:
        return frame
    columns = ((name, quote_name(name)) for name in frame.columns)
    return frame.selectExpr(
        *(
            f"CAST({quoted} AS {casts[name]}) AS {quoted}" if name in casts else quoted
            for name, quoted in columns
        )
    )


def create_frame(spark: SparkSession, rows: Any, schema: StructType) -> DataFrame:
    """Return the rows of a table, which are in Arrow, as a frame with the columns and types of `schema`."""
    casts = {
        field.name: kind.upper()
        for field, sent in zip(schema, rows.schema.types, strict=True)
        if _name_type(sent) == "timestamp"
        and (kind := field.dataType.typeName()) in ("timestamp_ntz", "date")
    }
    read = ", ".join(
        f"{quote_name(field.name)} {'timestamp' if field.name in casts else field.dataType.simpleString()}"
        for field in schema
    )
    return cast_columns(spark.createDataFrame(rows, read if casts else schema), casts)
