"""Expand a test with a table: replace `${name}` with the values of each table row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.pipeline.load.document import Path

_PLACEHOLDER = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_]\w*)\}")


@dataclass(frozen=True)
class MissingParameter:
    """A placeholder in a test: the path of its text, and its name."""

    path: Path
    name: str


def find_placeholders(value: Any, path: Path = ()) -> Iterator[MissingParameter]:
    """Yield every `${name}` in a value or its keys at any depth, with the path of its text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (
                MissingParameter((*path, key), match["name"])
                for match in _PLACEHOLDER.finditer(key)
                if match["name"]
            )
            yield from find_placeholders(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from find_placeholders(item, (*path, number))
    elif isinstance(value, str) and "$" in value:
        yield from (
            MissingParameter(path, match["name"]) for match in _PLACEHOLDER.finditer(value) if match["name"]
        )


def fill_placeholders(value: Any, row: Mapping[str, Any]) -> Any:
    """Replace the placeholders in a value. Text that is only a placeholder takes the type of the row's value.

    `$$` becomes a dollar sign. A placeholder that the row does not define is left unchanged.
    """
    if isinstance(value, dict):
        return {
            format_text(fill_placeholders(key, row)): fill_placeholders(item, row)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [fill_placeholders(item, row) for item in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    full_match = _PLACEHOLDER.fullmatch(value)
    if full_match and full_match["name"]:
        return row.get(full_match["name"], value)

    def replacement(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "$"
        return format_text(row[match["name"]]) if match["name"] in row else match[0]

    return _PLACEHOLDER.sub(replacement, value)


def format_text(value: Any) -> str:
    """Format a value inside a text, in YAML notation."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def name_case(name: str, row: Mapping[str, Any]) -> str:
    """Return the test name for one row: with its values filled in, or appended if the name has no placeholder."""
    if any(match["name"] in row for match in _PLACEHOLDER.finditer(name) if match["name"]):
        return (
            str(fill_placeholders(name, row))
            if not _PLACEHOLDER.fullmatch(name)
            else format_text(fill_placeholders(name, row))
        )
    return f"{name} [{', '.join(f'{key}={format_text(value)}' for key, value in row.items())}]"
