"""Convert between instants and times without a zone, in the time zone of the Spark session.

Spark compares the two in that zone. DuckDB and PySpark would convert them in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow

from millstream.connectors.api.ddl import instant_text_sql, quote_name

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
    ("timestamp", "VARCHAR"): "STRING",
    ("timestamp_ntz", _INSTANT): "TIMESTAMP",
    ("date", _INSTANT): "TIMESTAMP",
}
# Pairs of types, of a value as it is read and of its column in Spark, that Spark casts.
_READ = {("timestamp", "timestamp_ntz"), ("timestamp", "date"), ("string", "timestamp")}


def find_casts(schema: pyarrow.Schema, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types to which columns are cast before they are written, by column.

    `schema` is that of the rows in Arrow. `types` has the table's types by lower-case name.
    """
    pairs = {field.name: (_name_type(field.type), types[field.name.lower()]) for field in schema}
    return {name: _CASTS[pair] for name, pair in pairs.items() if pair in _CASTS}


def _name_type(kind: pyarrow.DataType) -> str:
    """Return Spark's name of a type of Arrow, "" if that is neither a time nor a text."""
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        return "string"
    if pyarrow.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return "date" if pyarrow.types.is_date(kind) else ""


def cast_columns(frame: DataFrame, casts: Mapping[str, str]) -> DataFrame:
    """Return the frame with some columns cast to these types."""
    if not casts:
        return frame
    columns = ((quote_name(name), casts.get(name)) for name in frame.columns)
    return frame.selectExpr(*(f"{_cast(quoted, kind)} AS {quoted}" for quoted, kind in columns))


def _cast(column: str, kind: str | None) -> str:
    """Return SQL that casts a column to a type; None keeps its own."""
    if kind is None:
        return column
    return instant_text_sql(column) if kind == "STRING" else f"CAST({column} AS {kind})"


def create_frame(spark: SparkSession, rows: Any, schema: StructType) -> DataFrame:
    """Return the rows of a table, which are in Arrow, as a frame with the columns and types of `schema`."""
    sent_types = {
        field.name: sent
        for field, kind in zip(schema, rows.schema.types, strict=True)
        if ((sent := _name_type(kind)), field.dataType.typeName()) in _READ
    }
    if not sent_types:
        return spark.createDataFrame(rows, schema)
    read = ", ".join(
        f"{quote_name(field.name)} {sent_types.get(field.name, field.dataType.simpleString())}"
        for field in schema
    )
    casts = {name: schema[name].dataType.typeName().upper() for name in sent_types}
    return cast_columns(spark.createDataFrame(rows, read), casts)
