"""Format rows as a plain table for a terminal or a pipe, and their values for JSON."""

from __future__ import annotations

import base64
import math
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def format_table(names: Sequence[str], rows: Sequence[Sequence[object]], *, width: int | None = None) -> str:
    """Format column names and rows, one line per row. Align numbers right and escape terminal control characters.

    With `width`, cut each line to this number of characters.
    """
    texts = [[format_value(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[index]) for row in texts)]) for index, name in enumerate(names)]
    right = [
        all(isinstance(row[index], int | float | None) for row in rows) and bool(rows)
        for index in range(len(names))
    ]

    def line(cells: Sequence[str]) -> str:
        placed = (cell.rjust(width) if to_right else cell.ljust(width)
                  for cell, width, to_right in zip(cells, widths, right, strict=True))  # fmt: skip
        text = "  ".join(placed).rstrip()
        return text if width is None or len(text) <= width else f"{text[: max(0, width - 1)]}…"

    return "".join(f"{formatted}\n" for formatted in (line(names), *(line(row) for row in texts)))


def format_value(value: object) -> str:
    """Format one value: times as `2026-01-31 12:00:00`, fractions with six digits, control characters escaped."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in str(value)
    )


def format_time(time: datetime) -> str:
    """Format a time as the console sink does: without its offset if that is UTC, and without a fraction of zero."""
    if time.utcoffset() == timedelta(0):
        time = time.replace(tzinfo=None)
    return time.isoformat(sep=" ", timespec="seconds" if not time.microsecond else "microseconds")


def to_strict_json(value: object) -> object:
    """Convert a value for `json.dumps`: bytes to base64, and the floats that JSON lacks to text, such as `NaN`."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str | int) else str(key): to_strict_json(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [to_strict_json(item) for item in value]
    return value


def terminal_width() -> int | None:
    """Return the width of the terminal that stdout goes to, or None if it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
