"""Send rows as Arrow from the JVM and as binary COPY to Postgres, by column and without Python values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pgpq
import pyarrow
import pyarrow.compute

from millstream.connectors.api.ddl import JSON_OPTIONS, instant_text_sql, options_argument, quote_name
from millstream.connectors.postgres.copy.arrays import NESTED, SUFFIX, encode_array
from millstream.diagnostics.failure import MillstreamError, NotReady

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.types import StructField, StructType

    from millstream.connectors.postgres.table import Table

# Postgres type of a created table for each Spark type. Types without a counterpart are sent as JSON.
_TYPES = {
    "string": "text",
    "char": "text",
    "varchar": "text",
    "void": "text",
    "boolean": "boolean",
    "byte": "smallint",
    "short": "smallint",
    "integer": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "binary": "bytea",
    "array": "jsonb",
    "map": "jsonb",
    "struct": "jsonb",
    "variant": "jsonb",
}
# Postgres type in which a Spark type is sent, by the server's name, and the column types with the same binary form.
# For other columns the server casts the value.
_WIRE = {
    "boolean": ("bool", ()),
    "byte": ("int2", ()),
    "short": ("int2", ()),
    "integer": ("int4", ()),
    "long": ("int8", ()),
    "float": ("float4", ()),
    "double": ("float8", ()),
    "date": ("date", ()),
    "timestamp": ("timestamptz", ()),
    "timestamp_ntz": ("timestamp", ()),
    "binary": ("bytea", ()),
    "decimal": ("numeric", ()),
    "text": ("text", ("varchar", "bpchar")),
}
# Spark casts between instants and times without a zone, in the zone of its session. A cast in Postgres would use the
# zone of the server, of the role or of PGTZ, in which nothing else of a pipeline computes.
_CASTS_BY_SESSION_ZONE = {
    ("timestamp", "timestamp"): "timestamp_ntz",
    ("timestamp", "date"): "date",
    ("timestamp", "time"): "timestamp_ntz",
    ("timestamp_ntz", "timestamptz"): "timestamp",
    ("date", "timestamptz"): "timestamp",
}
_TEXTS = ("text", "varchar", "bpchar", "citext")


class Copy(Protocol):
    """Protocol for the part of psycopg's Copy that is used."""

    def write(self, buffer: bytes) -> None:
        """Send bytes."""


@dataclass(frozen=True)
class CopyColumn:
    """A column to send: its SQL expression in Spark, and its Postgres type until it is in the table."""

    name: str
    sql: str
    wire: str
    is_table_type: bool
    """Whether the binary form is that of the table's column."""
    is_unconverted: bool = False
    """Whether the expression is the column itself."""


def column_type(field: StructField) -> str:
    """Return the Postgres type for a column. Raises `NotReady` if there is none."""
    name = field.dataType.typeName()
    if name.startswith("decimal"):
        precision, scale = field.dataType.precision, field.dataType.scale  # type: ignore[attr-defined]
        return f"numeric({precision},{scale})"
    if name not in _TYPES:
        raise NotReady(
            f"column '{field.name}' has type {field.dataType.simpleString()}, which Postgres does not "
            "support",
            f"cast it in the view, for example CAST({field.name} AS STRING)",
        )
    return _TYPES[name]


def encode_columns(schema: StructType, columns: tuple[str, ...], table: Table) -> tuple[CopyColumn, ...]:
    """Return how to send each column to a table. Raises `NotReady` if an array column accepts no value of one."""
    return tuple(
        _encode_column(schema[name], table.types.get(name, ""), table.casts.get(name, "")) for name in columns
    )


def _encode_column(field: StructField, column_type: str, full_type: str) -> CopyColumn:
    kind = field.dataType.typeName()
    name = quote_name(field.name)
    if full_type.endswith(SUFFIX):
        sql, wire = encode_array(field, full_type), "text"
    elif kind in NESTED:
        sql, wire = f"to_json({name}{options_argument(JSON_OPTIONS)})", "text"
    elif kind in ("string", "char", "varchar", "void"):
        sql, wire = f"CAST({name} AS STRING)", "text"
    elif kind == "timestamp" and column_type in _TEXTS:
        sql, wire = instant_text_sql(name), "text"
    else:
        wire = "decimal" if kind.startswith("decimal") else kind
        # Arrow's smallest integer has one byte; Postgres' smallest has two.
        sql = f"CAST({name} AS SMALLINT)" if kind == "byte" else name
        if cast := _CASTS_BY_SESSION_ZONE.get((kind, column_type)):
            sql, wire = f"CAST({name} AS {cast})", cast
    sent_type, equivalent_types = _WIRE[wire]
    return CopyColumn(
        field.name,
        f"{sql} AS {name}",
        sent_type,
        is_table_type=column_type in (sent_type, *equivalent_types),
        is_unconverted=sql == name or kind == "string",
    )


def send_batches(copy: Copy, batches: Iterable[Any]) -> int:
    """Send Arrow batches as one binary COPY; return the number of rows.

    Raises `MillstreamError` for a NUL character, which Postgres text cannot contain.
    """
    encoder, count = None, 0
    for batch in batches:
        if encoder is None:
            encoder = pgpq.ArrowToPostgresBinaryEncoder(batch.schema)
            copy.write(encoder.write_header())
        _refuse_nul(batch)
        copy.write(encoder.write_batch(batch))
        count += batch.num_rows
    if encoder is not None:
        copy.write(encoder.finish())
    return count


def _refuse_nul(batch: Any) -> None:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pyarrow.types.is_string(column.type) and _contains_nul(column):
            raise MillstreamError(
                f"column '{name}' contains a NUL byte, which Postgres text cannot contain",
                f"remove it in the view: replace({name}, chr(0), '')",
            )


def _contains_nul(column: Any) -> bool:
    """Return whether the text contains a zero byte, with one search of the buffer instead of one per row."""
    data = column.buffers()[2]
    if data is None or b"\0" not in memoryview(data).tobytes():
        return False
    # The buffer may contain other bytes outside this array's range.
    return bool(pyarrow.compute.any(pyarrow.compute.match_substring(column, "\0")).as_py())


class CopyRows:
    """The rows of one batch in the driver's memory; `count` is their number."""

    def __init__(self, table: pyarrow.Table) -> None:
        """Take the columns to send, in their order, in the types of Arrow that Spark gives them."""
        self._table: Any = table
        self.count: int = self._table.num_rows

    def send(self, copy: Copy) -> None:
        """Send every row. Raises `MillstreamError` for a NUL character."""
        send_batches(copy, self._batches())

    def _batches(self) -> Iterator[Any]:
        return iter(self._table.to_batches(max_chunksize=50_000))
