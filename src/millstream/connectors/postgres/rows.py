"""How rows travel: as Arrow out of the JVM, then as binary COPY, column by column and without a Python value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pgpq
import pyarrow
import pyarrow.compute

from millstream.diagnostics.failure import MillstreamError, NotReady

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

# Spark's type name -> Postgres type of a table that is made here. What has no counterpart travels as JSON.
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
_NESTED = frozenset({"array", "map", "struct", "variant"})
# The Postgres type that a Spark type is on the way, by the server's own names, and the types of a table's
# columns whose binary form is the same. Any other column takes its value by a cast in the server.
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


class Copy(Protocol):
    """The part of psycopg's Copy that is used."""

    def write(self, buffer: bytes) -> None:
        """Send some bytes."""


@dataclass(frozen=True)
class Wired:
    """A column on its way: the SQL that Spark gives it by, and its Postgres type until it is in the table."""

    name: str
    sql: str
    wire: str
    fits: bool
    """Is that the binary form of the table's own column?"""


def column_type(field: StructField) -> str:
    """The Postgres type for a column. Raises `NotReady` for a type that has none."""
    name = field.dataType.typeName()
    if name.startswith("decimal"):
        precision, scale = field.dataType.precision, field.dataType.scale  # type: ignore[attr-defined]
        return f"numeric({precision},{scale})"
    if name not in _TYPES:
        raise NotReady(
            f"column '{field.name}' is of type {field.dataType.simpleString()}, unknown to Postgres",
            f"cast it in the view, for example CAST({field.name} AS STRING)",
        )
    return _TYPES[name]


def wired(schema: StructType, columns: tuple[str, ...], types: Mapping[str, str]) -> tuple[Wired, ...]:
    """How each column travels to a table whose columns have these types, by the server's names of them."""
    return tuple(_wired(schema[name], types.get(name, "")) for name in columns)


def _wired(field: StructField, held: str) -> Wired:
    kind = field.dataType.typeName()
    name = f"`{field.name.replace('`', '``')}`"
    if kind in _NESTED:
        sql, wire = f"to_json({name}, map('ignoreNullFields', 'false'))", "text"
    elif kind in ("string", "char", "varchar", "void"):
        sql, wire = f"CAST({name} AS STRING)", "text"
    else:
        wire = "decimal" if kind.startswith("decimal") else kind
        # Arrow's smallest integer is one byte; Postgres' is two.
        sql = f"CAST({name} AS SMALLINT)" if kind == "byte" else name
    there, same = _WIRE[wire]
    return Wired(field.name, f"{sql} AS {name}", there, held in (there, *same))


def sent(copy: Copy, batches: Iterable[Any]) -> int:
    """Send Arrow batches as one binary COPY; gives the number of rows.

    Raises `MillstreamError` at a NUL character, which a Postgres text cannot hold.
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
        if pyarrow.types.is_string(column.type) and _holds_nul(column):
            raise MillstreamError(
                f"column '{name}' holds a NUL byte, which a Postgres text cannot hold",
                f"take it out in the view: replace({name}, chr(0), '')",
            )


def _holds_nul(column: Any) -> bool:
    """Is there a zero byte among the characters? One look at the buffer, not one a row."""
    data = column.buffers()[2]
    if data is None or b"\0" not in memoryview(data).tobytes():
        return False
    # Bytes outside this array's own stretch may be anything.
    return bool(pyarrow.compute.any(pyarrow.compute.match_substring(column, "\0")).as_py())


class Rows:
    """The rows of one batch in the driver's memory: `count` of them."""

    def __init__(self, frame: DataFrame, columns: tuple[Wired, ...]) -> None:
        """Runs the batch; what the batch itself raises comes through."""
        self._table: Any = frame.selectExpr(*(one.sql for one in columns)).toArrow()
        self.count: int = self._table.num_rows

    def send(self, copy: Copy) -> None:
        """Send every row. Raises `MillstreamError` at a NUL character."""
        sent(copy, self._batches())

    def _batches(self) -> Iterator[Any]:
        return iter(self._table.to_batches(max_chunksize=50_000))
