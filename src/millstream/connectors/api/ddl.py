"""Parse Spark types in DDL, such as `map<string,struct<at:timestamp>>`, and write SQL for names and values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

NESTED = ("array", "map", "struct")
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options with which `to_json` keeps NULLs, and times their microseconds."""


def quote_name(name: str) -> str:
    """Quote a name for SQL."""
    return f"`{name.replace('`', '``')}`"


def find_column(name: str, columns: Iterable[str]) -> str | None:
    """Return the column that Spark takes for a name, which it compares without case; None if there is none."""
    return next((column for column in columns if column.lower() == name.lower()), None)


def quote_text(text: str) -> str:
    """Quote a text for Spark SQL. JSON's escapes are valid in its string literals."""
    return "'" + json.dumps(text)[1:-1].replace("'", "\\'") + "'"


def options_argument(options: Mapping[str, str]) -> str:
    """Return the options of a function of Spark SQL, such as `to_json`, as its last argument: `, map(…)`."""
    texts = [quote_text(part) for pair in options.items() for part in pair]
    return f", map({', '.join(texts)})" if texts else ""


def parsed_values(form: str, text: str, columns: StructType, options: Mapping[str, str]) -> dict[str, str]:
    """Return Spark SQL for the columns of a text in a form, `json` or `csv`. Needs a session."""
    # Without any option, Spark would parse the text once for each column (`OptimizeCsvJsonExprs`).
    options = {"mode": "PERMISSIVE", **options}
    row = f"from_{form}({text}, {quote_text(columns.toDDL())}{options_argument(options)})"
    return {name: f"{row}.{quote_name(name)}" for name in columns.fieldNames()}


def instant_text_sql(column: str) -> str:
    """Return Spark SQL for an instant as text, such as `2026-01-31 12:00:00.5+01`, in the zone of the session.

    Postgres and DuckDB write an instant in the same way. `column` is a quoted name.
    """
    return f"concat(CAST({column} AS STRING), regexp_replace(date_format({column}, 'xxxxx'), ':00$', ''))"


def empty_text_as_null(schema: StructType, columns: Sequence[str], table: str = "") -> dict[str, str]:
    """Return Spark SQL for those of the columns that are strings, with NULL for an empty text, by name.

    Spark's file writers and Delta store an empty text in a partition column as NULL.
    """
    lower, prefix = {name.lower() for name in columns}, f"{table}." if table else ""
    return {
        field.name: f"nullif({prefix}{quote_name(field.name)}, '')"
        for field in schema.fields
        if field.name.lower() in lower and field.dataType.typeName() == "string"
    }


def outer_type(ddl: str) -> str:
    """Return the outer name of a type, without parameters: `map`, `decimal`, `time`.

    `interval` is Spark's interval of months, days and microseconds; an interval with named units is `span`.
    """
    if ddl.lower().startswith("interval "):
        return "span"
    return ddl.partition("<")[0].partition("(")[0].partition(" ")[0].lower()


def type_names(ddl: str) -> Iterator[str]:
    """Yield the names of a type and of all nested types, the outermost first."""
    kind = outer_type(ddl)
    yield kind
    if kind in NESTED and "<" in ddl:
        for part in _split_types(ddl[ddl.index("<") + 1 : -1]):
            yield from type_names(part.partition(":")[2] if kind == "struct" else part)


def map_key_types(ddl: str) -> Iterator[str]:
    """Yield the outer types of the keys of a map and of all nested maps."""
    kind = outer_type(ddl)
    if kind in NESTED and "<" in ddl:
        parts = list(_split_types(ddl[ddl.index("<") + 1 : -1]))
        if kind == "map":
            yield outer_type(parts[0])
        for part in parts:
            yield from map_key_types(part.partition(":")[2] if kind == "struct" else part)


def _split_types(text: str) -> Iterator[str]:
    """Split a text at the commas outside brackets."""
    depth, start = 0, 0
    for index, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    if text:
        yield text[start:]
