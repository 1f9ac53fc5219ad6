"""Change SQL texts: views in place of tables and of functions that read, on the same lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Words that stand after a table and are no alias.
_AFTER_TABLE = frozenset(
    {
        "WHERE",
        "GROUP",
        "JOIN",
        "LEFT",
        "RIGHT",
        "INNER",
        "FULL",
        "CROSS",
        "ON",
        "UNION",
        "ORDER",
        "LATERAL",
        "LIMIT",
    }
    | {
        "HAVING",
        "USING",
        "WINDOW",
        "WATERMARK",
        "ANTI",
        "SEMI",
        "NATURAL",
        "EXCEPT",
        "INTERSECT",
        "AS",
        "QUALIFY",
    }
)


def name_view(table: str) -> str:
    """Return the name of the temporary view for a table: of the same length as the table's last part, and in ASCII.

    Spark refuses views with other letters. Each of them becomes one of ASCII, so that different names stay different.
    """
    name = re.sub(r"\W", "_", table.rpartition(".")[2]) if "." in table else table
    return re.sub(r"[^\x00-\x7f]", lambda letter: chr(ord("a") + ord(letter[0]) % 26), name)


def with_view(text: str, name: str, view: str) -> str:
    """Return an SQL text with a view in place of a table's name."""
    if view == name:
        return text
    quoted = re.escape(name).replace(r"\.", r"`?\s*\.\s*`?")
    return re.sub(rf"(?<![\w.`])`?{quoted}`?(?![\w.`])", _padded(view), text, flags=re.IGNORECASE)


def find_aliases(text: str, view: str) -> list[str]:
    """Return the names that an SQL text gives to a table."""
    aliases = re.findall(rf"\b{re.escape(view)}\b`?\s*\)?\s+(?:AS\s+)?(\w+)", text, re.IGNORECASE)
    return [name for name in aliases if name.upper() not in _AFTER_TABLE]


def without_reader(text: str, name: str, number: int) -> tuple[str, list[str]]:
    """Return an SQL text with views in place of the calls of a function that reads, and their names."""
    views: list[str] = []
    while call := re.search(rf"\b{name}\s*\(", text, re.IGNORECASE):
        stop, view = find_closing_bracket(text, call.end()), f"read_{number}_{len(views)}"
        views.append(view)
        lines = "\n" * text.count("\n", call.start(), stop)
        text = (
            text[: call.start()] + f" {view} ".ljust(stop - call.start() - len(lines)) + lines + text[stop:]
        )
    return text, views


def find_closing_bracket(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one before `start`."""
    depth, quote = 1, ""
    for index in range(start, len(text)):
        character = text[index]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
            if not depth:
                return index + 1
    return len(text)


def _padded(view: str) -> Callable[[re.Match[str]], str]:
    """Return a replacement function that pads the name to the same width, so that positions stay correct."""
    return lambda match: view.rjust(len(match[0]))
