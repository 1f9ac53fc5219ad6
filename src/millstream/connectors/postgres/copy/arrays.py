"""Write Spark arrays to array columns of Postgres, as text that the server casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.api.ddl import JSON_OPTIONS, options_argument, quote_name
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pyspark.sql.types import StructField

SUFFIX = "[]"
"""End of the name of an array type, as format_type returns it."""
NESTED = frozenset({"array", "map", "struct", "variant"})
JSON_TYPES = ("json", "jsonb", "text", "character varying")
"""Types of elements that store a nested value as JSON."""
_ZONED = "timestamp with time zone"
# Local time in the session's zone, with its offset. Postgres ignores the offset for types without a zone.
_WITH_OFFSET = "yyyy-MM-dd HH:mm:ss.SSSSSSxxxxx"


def encode_array(field: StructField, column_type: str) -> str:
    """Return Spark SQL for a column's values as literals of an array type of Postgres, such as `integer[]`.

    Raises `NotReady` if no value can be one.
    """
    kind, element_type = field.dataType.typeName(), column_type.removesuffix(SUFFIX)
    name = quote_name(field.name)
    if kind in ("string", "char", "varchar", "void"):
        return f"CAST({name} AS STRING)"
    element = field.dataType.elementType.typeName() if kind == "array" else kind  # type: ignore[attr-defined]
    if kind != "array" or (element in NESTED and element_type not in JSON_TYPES):
        raise NotReady(
            f"column '{field.name}' has type {field.dataType.simpleString()}, which an array column of type "
            f"{column_type} cannot store",
            "make it a column of type jsonb, or convert the column in the view",
        )
    text = _element_text(element, element_type)
    # Quotes and backslashes are escaped with a backslash. As a number it does not depend on how Spark reads literals.
    escaped = f"replace(replace({text}, chr(92), repeat(chr(92), 2)), '\"', concat(chr(92), '\"'))"
    quoted = f"if(e IS NULL, 'NULL', concat('\"', {escaped}, '\"'))"
    return f"concat('{{', array_join(transform({name}, e -> {quoted}), ','), '}}')"


def _element_text(kind: str, element_type: str) -> str:
    """Return Spark SQL for the text of an element `e`, as Postgres reads it."""
    if kind in NESTED:
        return f"to_json(e{options_argument(JSON_OPTIONS)})"
    if kind == "binary":
        return "concat(chr(92), 'x', hex(e))"
    if kind == "timestamp" or (kind in ("timestamp_ntz", "date") and element_type == _ZONED):
        return f"date_format(CAST(e AS TIMESTAMP), '{_WITH_OFFSET}')"
    return "CAST(e AS STRING)"
