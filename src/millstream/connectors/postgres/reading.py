"""Read the rows of a table for a comparison: as text by COPY, column by column, then given Spark's types."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow
import pyarrow.csv
from psycopg.sql import SQL, Composed, Identifier, Literal

from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.connect import connect
from millstream.connectors.postgres.errors import explain
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from millstream.connectors.cut import Cut
    from millstream.connectors.postgres.sink import PostgresSink

_NESTED = frozenset({"array", "map", "struct", "variant"})
# Whatever the role's own settings are, texts are written so that Spark reads them back to the same values.
_WORDS = SQL("SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO'; SET LOCAL bytea_output = 'hex'")


def rows_of(sink: PostgresSink, spark: SparkSession, schema: StructType, cut: Cut) -> DataFrame:
    """The rows of the table that lie in a cut, with the columns and types of `schema`; none before it is made.

    They pass through the driver's memory. A text that is not of its column's type ends the reading of it.
    """
    with connect(sink.address(), "millstream backfill") as connection:
        try:
            table = tables.find(connection, sink.table)
            if table is None:
                return spark.createDataFrame([], schema)
            absent = [name for name in schema.names if name not in table.columns]
            if absent:
                raise NotReady(
                    f"table {sink.table} has no column '{absent[0]}', which the query gives",
                    "it was made by another version of the query: compare a table that was made by this one",
                )
            with connection.transaction():
                connection.execute(_WORDS)
                found = _copied(connection, table, schema, cut)
        except psycopg.Error as error:
            raise explain(error, sink.address().shown, sink.table) from error
    if not found.num_rows:
        return spark.createDataFrame([], schema)
    texts = spark.createDataFrame(found)
    return texts.selectExpr(*(_typed(at, field) for at, field in enumerate(schema.fields)))


def within(cut: Cut, table: tables.Table) -> Composed | SQL:
    """A cut as a condition on a table's rows."""
    if cut.whole:
        return SQL("true")
    (name,) = cut.path
    kind = table.types.get(name, "")
    parts = [
        SQL("{} {} {}").format(Identifier(name), SQL(sign), Literal(_moment(moment, kind)))
        for sign, moment in ((">=", cut.start), ("<", cut.end))
        if moment is not None
    ]
    return SQL(" AND ").join(parts)


def _moment(moment: datetime, kind: str) -> Any:
    """A moment in the type of a column: where that has no zone, in UTC."""
    plain = moment.astimezone(UTC).replace(tzinfo=None)
    if kind == "date":
        return plain.date()
    return plain if kind == "timestamp" else moment


def _copied(connection: psycopg.Connection[Any], table: tables.Table, schema: StructType, cut: Cut) -> Any:
    """The table's rows as an Arrow table of texts: `c0`, `c1` and so on."""
    names = SQL(", ").join([Identifier(name) for name in schema.names])
    where = SQL("true") if len(cut.path) > 1 else within(cut, table)
    copy = SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT (FORMAT CSV)").format(
        names, table.identifier, where
    )
    sink = pyarrow.BufferOutputStream()
    with connection.cursor() as cursor, cursor.copy(copy) as told:
        for part in told:
            sink.write(part)
    columns = [f"c{at}" for at in range(len(schema.fields))]
    buffer = sink.getvalue()
    if not buffer.size:
        return pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in columns})
    return pyarrow.csv.read_csv(
        pyarrow.BufferReader(buffer),
        read_options=pyarrow.csv.ReadOptions(column_names=columns),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        # Postgres writes NULL as nothing, and an empty text as two quotes.
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pyarrow.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _typed(at: int, field: StructField) -> str:
    """A column of texts in the type of a field."""
    kind, name = field.dataType.typeName(), f"`{field.name.replace('`', '``')}`"
    if kind in _NESTED:
        made = f"from_json(c{at}, '{field.dataType.simpleString()}')"
    elif kind == "binary":
        made = f"unhex(substring(c{at}, 3))"
    else:
        made = f"CAST(c{at} AS {field.dataType.simpleString()})"
    return f"{made} AS {name}"
