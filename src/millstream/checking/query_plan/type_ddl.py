"""Convert Spark's types from JSON to DDL."""

from __future__ import annotations

from typing import Any

_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "null": "void"}


def to_ddl(json_type: Any) -> str:
    """Return the DDL of a type in Spark's JSON, such as `struct<start:timestamp,end:timestamp>`, or "" for None."""
    if json_type is None:
        return ""
    if isinstance(json_type, str):
        return _NAMES.get(json_type, json_type)
    if not isinstance(json_type, dict):
        return str(json_type)
    match json_type.get("type"):
        case "struct":
            fields = (f"{field['name']}:{to_ddl(field['type'])}" for field in json_type.get("fields", ()))
            return f"struct<{','.join(fields)}>"
        case "array":
            return f"array<{to_ddl(json_type.get('elementType'))}>"
        case "map":
            return f"map<{to_ddl(json_type.get('keyType'))},{to_ddl(json_type.get('valueType'))}>"
        case "udt":
            return to_ddl(json_type.get("sqlType"))
        case other:
            return to_ddl(other)
