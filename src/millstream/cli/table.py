"""Rows as a plain table for a terminal or a pipe."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The rows below their names, one line a row; numbers to the right, nothing a terminal would obey."""
    texts = [[text(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[at]) for row in texts)]) for at, name in enumerate(names)]
    right = [
        all(isinstance(row[at], int | float | None) for row in rows) and bool(rows)
        for at in range(len(names))
    ]

    def line(cells: Sequence[str]) -> str:
        placed = (cell.rjust(width) if to_right else cell.ljust(width)
                  for cell, width, to_right in zip(cells, widths, right, strict=True))  # fmt: skip
        return "  ".join(placed).rstrip()

    return "".join(f"{told}\n" for told in (line(names), *(line(row) for row in texts)))


def text(value: object) -> str:
    """One value as a person reads it: times in ISO form, fractions to six places, control signs escaped."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds" if not value.microsecond else "microseconds")
    if isinstance(value, float):
        return f"{value:.6g}"
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in str(value))
