"""Check Postgres names: those that Postgres would truncate silently are refused."""

from __future__ import annotations

import hashlib
import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")
# NAMEDATALEN - 1 of a standard build. Postgres truncates longer names, so that two columns may become one.
LONGEST = 63


def name_problem(name: str) -> str:
    """Explain why `name` is not valid for a schema or table; empty if it is."""
    if _NAME.fullmatch(name):
        return ""
    return f"{name!r} is not a valid schema or table name: use letters, digits and _, at most {LONGEST}"


def table_problem(name: str) -> str:
    """Explain why `name` is not valid as `table` or `schema.table`; empty if it is."""
    parts = name.split(".")
    if len(parts) > 2:
        return f"{name!r} has more parts than a schema and a table"
    return next((reason for part in parts if (reason := name_problem(part))), "")


def column_problem(name: str) -> str:
    """Explain why `name` is not valid for a column; empty if it is. Columns are quoted, so most names are valid."""
    if not name or "\0" in name:
        return f"{name!r} is not a valid column name"
    if len(name.encode()) > LONGEST:
        return f"column '{name}' is longer than {LONGEST} bytes, which Postgres would truncate"
    return ""


def deletions_table(table: str, kind: int) -> str:
    """Return the name of the table for the deletions of `table`: short enough, and unique to the table.

    A history (`kind` 2) has another key, and therefore a separate table.
    """
    schema, name = split_table_name(table)
    digest = hashlib.sha256(f"{schema}.{name} {kind}".encode()).hexdigest()[:6]
    return f"deletions_{name[:40].lower()}_{digest}"


def split_table_name(table: str) -> tuple[str, str]:
    """Split a table name into schema and table; the default schema is `public`."""
    schema, dot, name = table.rpartition(".")
    return (schema, name) if dot else ("public", name)


def canonical_name(table: str) -> str:
    """Return the table's name without the schema `public`."""
    return table.removeprefix("public.")


def table_spellings(table: str) -> list[str]:
    """Return every way a spec may write the table's name."""
    name = canonical_name(table)
    return [name] if "." in name else [name, f"public.{name}"]
