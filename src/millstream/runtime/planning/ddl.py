"""Spark's types, from their JSON to DDL."""

from __future__ import annotations

from typing import Any

_WORDS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "null": "void"}


def ddl(told: Any) -> str:
    """`struct<start:timestamp,end:timestamp>` for a type as Spark's JSON has it; empty for none."""
    if told is None:
        return ""
    if isinstance(told, str):
        return _WORDS.get(told, told)
    if not isinstance(told, dict):
        return str(told)
    match told.get("type"):
        case "struct":
            inside = (f"{one['name']}:{ddl(one['type'])}" for one in told.get("fields", ()))
            return f"struct<{','.join(inside)}>"
        case "array":
            return f"array<{ddl(told.get('elementType'))}>"
        case "map":
            return f"map<{ddl(told.get('keyType'))},{ddl(told.get('valueType'))}>"
        case "udt":
            return ddl(told.get("sqlType"))
        case other:
            return ddl(other)
