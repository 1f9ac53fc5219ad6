"""Read the columns of tables, paths and topics that only the author of a script knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from millstream.diagnostics.failure import InvalidInput
from millstream.spec.avro.schema import columns_of_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

# The file beside a script that has the same as the options.
FILE = "millstream-check.yml"


def read_columns(schemas: Sequence[str], tables: Sequence[str]) -> dict[str, str]:
    """Return the DDL by the name in lower case, from `NAME=FILE` and `NAME=DDL`. Raises WrongUse."""
    columns = {}
    for option, entries in (("--schema", schemas), ("--table", tables)):
        for entry in entries:
            name, equals, value = entry.partition("=")
            if not (name and equals and value.strip()):
                what = "NAME=FILE" if option == "--schema" else "NAME=DDL"
                raise InvalidInput(f"{option} {entry} is not {what}", f"write {option} {what}")
            columns[_key(name)] = _read_file(Path(value)) if option == "--schema" else value
    return columns


def read_columns_file(folder: Path) -> dict[str, str]:
    """Return the columns that a folder's file has under `schemas` and `tables`; nothing without a file."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8-sig")) or {}
        columns = {
            _key(name): _read_file(folder / value) for name, value in document.get("schemas", {}).items()
        }
        columns |= {_key(name): str(value) for name, value in document.get("tables", {}).items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, TypeError) as error:
        fix = "write 'tables: {NAME: DDL}' and 'schemas: {NAME: FILE}'"
        raise InvalidInput(f"{path} cannot be read: {error}", fix) from error
    return columns


def _key(name: str) -> str:
    return name.replace("`", "").rstrip("/").lower()


def _read_file(path: Path) -> str:
    """Return a schema file as DDL: one in Avro, Spark's JSON, or a DDL."""
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(
            f"the schema {path} cannot be read: {reason}", "name a readable file with a schema"
        ) from error
    if not text.startswith("{"):
        return text
    try:
        document: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"the schema {path} is not JSON: {error}",
            "write an Avro schema, Spark's JSON form of a schema, or DDL",
        ) from error
    if document.get("type") == "struct":
        return text
    return ", ".join(f"`{name}` {kind}" for name, kind in columns_of_schema(document).items())
