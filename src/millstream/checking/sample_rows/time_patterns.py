"""Write a time as a datetime pattern of Spark describes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt

# A text in quotes, a letter that may be repeated, and everything else.
_PARTS = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
_ISO = "%Y-%m-%dT%H:%M:%S"
_OFFSETS = {
    "x": "+00",
    "xx": "+0000",
    "xxx": "+00:00",
    "Z": "+0000",
    "ZZ": "+0000",
    "ZZZ": "+0000",
    "ZZZZZ": "Z",
}
_NAMES = {
    "E": "%a",
    "EE": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "MMM": "%b",
    "LLL": "%b",
    "MMMM": "%B",
    "LLLL": "%B",
}


def format_time(time: dt.datetime, pattern: str) -> str:
    """Return a time in UTC as text. Without a pattern, and for one with a letter that is not known, use ISO 8601."""
    parts = [_format_part(time, part[0]) for part in _PARTS.finditer(pattern)]
    if not parts or None in parts:
        return time.strftime(_ISO)
    return "".join(part for part in parts if part is not None)


def _format_part(time: dt.datetime, part: str) -> str | None:
    """Return what a part of a pattern describes; None if it is not known."""
    width = len(part)
    if part.startswith("'"):
        return part[1:-1].replace("''", "'") or "'"
    if (name := _NAMES.get(part)) is not None:
        return time.strftime(name)
    match part[0]:
        case "y" | "u":
            return f"{time.year % 100:02}" if width == 2 else f"{time.year:0{width}}"
        case "M" | "L":
            return f"{time.month:0{width}}"
        case "d":
            return f"{time.day:0{width}}"
        case "D":
            return f"{time.timetuple().tm_yday:0{width}}"
        case "H":
            return f"{time.hour:0{width}}"
        case "h":
            return f"{time.hour % 12 or 12:0{width}}"
        case "a":
            return "AM" if time.hour < 12 else "PM"
        case "m":
            return f"{time.minute:0{width}}"
        case "s":
            return f"{time.second:0{width}}"
        case "S":
            return f"{time.microsecond:06}000"[:width]
        case "X":
            return "Z"
        case "x" | "Z":
            return _OFFSETS.get(part)
        case "z" | "V":
            return "UTC"
        case letter if letter.isascii() and letter.isalpha():
            return None
        case _:
            # Brackets enclose what may be missing.
            return part.replace("[", "").replace("]", "")
