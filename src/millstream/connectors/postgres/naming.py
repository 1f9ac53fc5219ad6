"""Names that Postgres takes: a longer one would be cut without a word, so it is refused."""

from __future__ import annotations

import hashlib
import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")
# NAMEDATALEN - 1 of a standard build; Postgres cuts what is longer, and two columns may then become one.
LONGEST = 63


def bad_name(name: str) -> str:
    """Why `name` cannot name a schema or table here, in a sentence; empty when it can."""
    if _NAME.fullmatch(name):
        return ""
    return f"{name!r} cannot name a schema or table: use letters, digits and _, at most {LONGEST}"


def bad_table(name: str) -> str:
    """Why `name` cannot be `table` or `schema.table`; empty when it can."""
    parts = name.split(".")
    if len(parts) > 2:
        return f"{name!r} has more parts than a schema and a table"
    return next((wrong for part in parts if (wrong := bad_name(part))), "")


def bad_column(name: str) -> str:
    """Why `name` cannot name a column; empty when it can. Columns are always quoted, so most texts can."""
    if not name or "\0" in name:
        return f"{name!r} cannot name a column"
    if len(name.encode()) > LONGEST:
        return f"column '{name}' is longer than {LONGEST} bytes, which Postgres would cut"
    return ""


def deletions(table: str, kind: int) -> str:
    """The name of the table in which the deletions of `table` are kept: it fits, and is no other table's.

    A history (`kind` 2) has a key of its own, and so a table of its own.
    """
    schema, name = parts(table)
    mark = hashlib.sha256(f"{schema}.{name} {kind}".encode()).hexdigest()[:6]
    return f"deletions_{name[:40].lower()}_{mark}"


def parts(table: str) -> tuple[str, str]:
    """The schema and the table that `table` names; the schema is `public` unless given."""
    schema, dot, name = table.rpartition(".")
    return (schema, name) if dot else ("public", name)
