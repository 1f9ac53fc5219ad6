"""Read the rows of a table for a comparison: as text by COPY, then cast to Spark's types."""

from __future__ import annotations

from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow
import pyarrow.csv
from psycopg.sql import SQL, Composed, Identifier, Literal

from millstream.connectors.api.ddl import quote_name
from millstream.connectors.postgres import table as tables
from millstream.connectors.postgres.client.connection import connect
from millstream.connectors.postgres.client.errors import explain
from millstream.connectors.postgres.copy.arrays import NESTED
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

    from millstream.connectors.api.values.event_time_range import EventTimeRange
    from millstream.connectors.postgres.sink import PostgresSink

# Text formats that Spark parses back to the same values, whatever the role's settings.
_TEXT_FORMATS = SQL("SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO'; SET LOCAL bytea_output = 'hex'")


def read_range(
    sink: PostgresSink, spark: SparkSession, schema: StructType, time_range: EventTimeRange
) -> DataFrame:
    """Read the table's rows in a range, with the columns and types of `schema`; none if it does not exist.

    The rows pass through the driver's memory. Fails at a text that is not valid for its column's type.
    """
    with connect(sink.address(), "millstream backfill") as connection:
        try:
            table = tables.find_table(connection, sink.table)
            if table is None:
                return spark.createDataFrame([], schema)
            absent = [name for name in schema.names if name not in table.columns]
            if absent:
                raise NotReady(
                    f"table {sink.table} has no column '{absent[0]}', which the query has",
                    "the table is from another version of the query: write to a new table, or add the column",
                )
            with connection.transaction():
                connection.execute(_TEXT_FORMATS)
                is_nested = len(time_range.path) > 1
                condition = (
                    SQL("true")
                    if is_nested
                    else range_condition(time_range, table, partial(session_time, spark))
                )
                rows = _copy_as_text(connection, table, schema, condition)
        except psycopg.Error as error:
            raise explain(error, sink.address().label, sink.table) from error
    if not rows.num_rows:
        return spark.createDataFrame([], schema)
    texts = spark.createDataFrame(rows)
    return texts.selectExpr(
        *(_cast_column(index, field, table.types[field.name]) for index, field in enumerate(schema.fields))
    )


def range_condition(
    time_range: EventTimeRange, table: tables.Table, local: Callable[[datetime], datetime]
) -> Composed | SQL:
    """Return the SQL condition for a range of a column.

    `local` converts a time to the time without a zone with which Spark compares a date or a time without a zone.
    """
    if time_range.is_unbounded:
        return SQL("true")
    (name,) = time_range.path
    has_no_zone = table.types.get(name, "") in ("date", "timestamp")
    conditions = [
        SQL("{} {} {}").format(
            Identifier(name), SQL(operator), Literal(local(limit) if has_no_zone else limit)
        )
        for operator, limit in ((">=", time_range.start), ("<", time_range.end))
        if limit is not None
    ]
    return SQL(" AND ").join(conditions)


def session_time(spark: SparkSession, moment: datetime) -> datetime:
    """Convert a time with a zone to the time zone of the Spark session, and remove the zone."""
    in_utc = moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    (row,) = spark.sql(f"SELECT CAST(TIMESTAMP '{in_utc}Z' AS TIMESTAMP_NTZ) AS local").collect()
    return row.local  # type: ignore[no-any-return]


def _copy_as_text(
    connection: psycopg.Connection[Any], table: tables.Table, schema: StructType, condition: Composed | SQL
) -> Any:
    """Return the table's rows as an Arrow table of texts: `c0`, `c1` and so on."""
    names = SQL(", ").join(
        SQL("to_json({})").format(Identifier(field.name))
        if _is_array(field.dataType, table.types[field.name])
        else Identifier(field.name)
        for field in schema.fields
    )
    copy = SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT (FORMAT CSV)").format(
        names, table.identifier, condition
    )
    sink = pyarrow.BufferOutputStream()
    with connection.cursor() as cursor, cursor.copy(copy) as chunks:
        for chunk in chunks:
            sink.write(chunk)
    columns = [f"c{index}" for index in range(len(schema.fields))]
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


def _is_array(kind: DataType, table_type: str) -> bool:
    """Return whether a column of arrays is an array in the table too, rather than JSON."""
    return kind.typeName() == "array" and table_type.startswith("_")


def _cast_column(index: int, field: StructField, table_type: str) -> str:
    """Return SQL that casts a column of texts, of a type of Postgres, to the type of a field."""
    text, name = f"c{index}", quote_name(field.name)
    if not _is_array(field.dataType, table_type):
        return f"{_cast_text(text, field.dataType, table_type)} AS {name}"
    element = _cast_text("e", field.dataType.elementType, table_type.removeprefix("_"))  # type: ignore[attr-defined]
    return f"transform(from_json({text}, 'array<string>'), e -> {element}) AS {name}"


def _cast_text(text: str, data_type: DataType, table_type: str) -> str:
    """Return SQL that casts a text, of a type of Postgres, to a type of Spark."""
    kind, simple = data_type.typeName(), data_type.simpleString()
    if kind in NESTED:
        return f"from_json({text}, '{simple}')"
    if kind == "binary":
        return f"unhex(substring({text}, 3))"
    if kind in ("timestamp_ntz", "date") and table_type == "timestamptz":
        # Such a text has a zone, which a cast to a type without one ignores.
        return f"CAST(CAST({text} AS TIMESTAMP) AS {kind})"
    return f"CAST({text} AS {simple})"
