"""A test with a table, once for each of its rows: `${name}` replaced by the row's value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.pipeline.document import Path

_PLACE = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class Missing:
    """A placeholder that the table does not give: where its text stands, and its name."""

    path: Path
    name: str


def placeholders(value: Any, path: Path = ()) -> Iterator[Missing]:
    """Every `${name}` in a value or its keys, however deep, with the place of its text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (
                Missing((*path, key), found["name"]) for found in _PLACE.finditer(key) if found["name"]
            )
            yield from placeholders(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from placeholders(item, (*path, number))
    elif isinstance(value, str) and "$" in value:
        yield from (Missing(path, found["name"]) for found in _PLACE.finditer(value) if found["name"])


def filled(value: Any, row: Mapping[str, Any]) -> Any:
    """The value with the row's values in it; text that is nothing but a placeholder takes the value's type.

    `$$` is a dollar. A placeholder that the row does not give stays.
    """
    if isinstance(value, dict):
        return {worded(filled(key, row)): filled(item, row) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, row) for item in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    whole = _PLACE.fullmatch(value)
    if whole and whole["name"]:
        return row.get(whole["name"], value)

    def one(found: re.Match[str]) -> str:
        if found["name"] is None:
            return "$"
        return worded(row[found["name"]]) if found["name"] in row else found[0]

    return _PLACE.sub(one, value)


def worded(value: Any) -> str:
    """A value inside a text: as YAML would have it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def named(name: str, row: Mapping[str, Any]) -> str:
    """The name of the test for one row: with its values in it, or behind it where the name has no placeholder."""
    if any(found["name"] in row for found in _PLACE.finditer(name) if found["name"]):
        return str(filled(name, row)) if not _PLACE.fullmatch(name) else worded(filled(name, row))
    return f"{name} [{', '.join(f'{key}={worded(value)}' for key, value in row.items())}]"
