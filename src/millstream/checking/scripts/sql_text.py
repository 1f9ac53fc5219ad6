"""Change SQL texts: views in place of tables and of functions that read, on the same lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

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


class TableViews:
    """Chooses the names of the temporary views that a check creates in place of tables."""

    def __init__(self) -> None:
        self._created: dict[str, tuple[str, Any]] = {}

    def choose(self, table: str, taken: Collection[str], find: Callable[[str], Any]) -> str:
        """Return the name of the view for a table: its last part, by which the script may call its columns.

        If this name is `taken` by something else in the statement, or by another view of the session, it is the full
        name, as in `bronze_orders`. `find` returns a temporary view of the session, None if there is none.
        """
        if "." not in table:
            return name_view(table)
        last, full = name_view(table), name_view(re.sub(r"\W", "_", table))
        # A number cannot be the name of a view.
        names = [*([] if last.isdigit() else [last]), full, *(f"{full}_{number}" for number in range(2, 100))]
        return next(
            (name for name in names if name.lower() not in taken and self._is_free(name, table, find(name))),
            full,
        )

    def note(self, view: str, table: str, created: Any) -> None:
        """Note the view that was created for a table."""
        self._created[view.lower()] = (table.lower(), created)

    def has_other_table(self, view: str, existing: Any) -> bool:
        """Return whether the temporary view of this name is one that was created for a table of another name."""
        table, created = self._created.get(view.lower(), (view.lower(), None))
        return table != view.lower() and bool(created.equals(existing))

    def _is_free(self, view: str, table: str, existing: Any) -> bool:
        """Return whether a name has no view, or the one that was created for the same table."""
        owner, created = self._created.get(view.lower(), ("", None))
        return existing is None or (owner == table.lower() and bool(existing.equals(created)))


def with_view(text: str, name: str, view: str, others: Collection[str] = ()) -> str:
    """Return an SQL text with a view in place of a table's name, also before the name of a column.

    `others` are the other tables of the text.
    """
    if view == name:
        return text
    lower_names = {other.lower() for other in others} - {name.lower()}
    is_path = "/" in name
    if not is_path and not any(other.startswith(f"{name.lower()}.") for other in lower_names):
        text = _with_qualifier(text, name, view)
    text = re.sub(rf"(?<![\w.`])`?{_quoted(name)}`?(?![\w.`])", _padded(view), text, flags=re.IGNORECASE)
    last = name.rpartition(".")[2]
    if is_path or last.lower() == view.lower() or _has_other_meaning(text, last, {name, view, *lower_names}):
        return text
    return _with_qualifier(text, last, view)


def _has_other_meaning(text: str, last: str, names: Collection[str]) -> bool:
    """Return whether the last part of a table's name is another table, the first part of a name, or an alias."""
    word = last.lower()
    tables = [name.lower() for name in names]
    if any(table == word or table.startswith(f"{word}.") for table in tables):
        return True
    if sum(table.rpartition(".")[2] == word for table in tables) > 1:
        return True
    aliases = (alias.lower() for name in names for alias in find_aliases(text, name))
    return (
        word in aliases
        or re.search(rf"(?:\bAS\s+|\)\s*)`?{re.escape(last)}\b", text, re.IGNORECASE) is not None
    )


def _with_qualifier(text: str, name: str, view: str) -> str:
    """Return an SQL text with a view in place of a table's name where the name of a column follows."""
    pattern = rf"(?<![\w.`])`?{_quoted(name)}`?(?=\s*\.\s*[\w`*])"
    return re.sub(pattern, _padded(view), text, flags=re.IGNORECASE)


def _quoted(name: str) -> str:
    """Return a regular expression for a name, each of whose parts may be in backticks."""
    return re.escape(name).replace(r"\.", r"`?\s*\.\s*`?")


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
