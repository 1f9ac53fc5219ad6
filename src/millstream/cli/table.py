"""Format rows as a plain table for a terminal or a pipe."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def format_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format column names and rows, one line per row. Align numbers right and escape terminal control characters."""
    texts = [[format_value(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[index]) for row in texts)]) for index, name in enumerate(names)]
    right = [
        all(isinstance(row[index], int | float | None) for row in rows) and bool(rows)
        for index in range(len(names))
    ]

    def line(cells: Sequence[str]) -> str:
        placed = (cell.rjust(width) if to_right else cell.ljust(width)
                  for cell, width, to_right in zip(cells, widths, right, strict=True))  # fmt: skip
        return "  ".join(placed).rstrip()

    return "".join(f"{formatted}\n" for formatted in (line(names), *(line(row) for row in texts)))


def format_value(value: object) -> str:
    """Format one value: times in ISO form, fractions with six digits, control characters escaped."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds" if not value.microsecond else "microseconds")
    if isinstance(value, float):
        return f"{value:.6g}"
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in str(value)
    )
