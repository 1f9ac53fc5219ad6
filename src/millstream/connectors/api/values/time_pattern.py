"""Write times in the patterns of Spark's options, such as `timestampFormat`.

The patterns: https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

# A text in single quotes, where two quotes are one; repeats of a letter; or another character.
_PART = re.compile(r"'(?P<text>(?:[^']|'')*)'|(?P<field>(?P<letter>[A-Za-z])(?P=letter)*)|.", re.DOTALL)
_UTC = {
    **dict.fromkeys(("X", "XX", "XXX", "XXXX", "XXXXX", "ZZZZZ"), "Z"),
    **dict.fromkeys(("xx", "xxxx", "Z", "ZZ", "ZZZ"), "+0000"),
    **dict.fromkeys(("xxx", "xxxxx"), "+00:00"),
    **dict.fromkeys(("z", "zz", "zzz", "zzzz", "VV"), "UTC"),
    "x": "+00",
}


def format_time(time: datetime, pattern: str) -> str:
    """Write a time in UTC. Raises ValueError for a pattern with a field that is not supported."""
    return "".join(_format_part(time.astimezone(UTC), part) for part in _PART.finditer(pattern))


def _format_part(time: datetime, part: re.Match[str]) -> str:
    field = part["field"]
    if part["text"] is not None:
        return part["text"].replace("''", "'") or "'"
    if field is None:
        # An optional section, in brackets, is written.
        return "" if part[0] in "[]" else part[0]
    if field in _UTC:
        return _UTC[field]
    if field in ("yy", "uu"):
        return f"{time.year % 100:02}"
    if field in ("MMM", "LLL", "MMMM", "LLLL", "E", "EE", "EEE", "EEEE", "a"):
        names = {"a": "%p", "EEEE": "%A", "MMMM": "%B", "LLLL": "%B", "MMM": "%b", "LLL": "%b"}
        return time.strftime(names.get(field, "%a"))
    if field[0] == "S":
        return f"{time.microsecond:06}".ljust(len(field), "0")[: len(field)]
    numbers = {
        **dict.fromkeys("yu", time.year),
        **dict.fromkeys("ML", time.month),
        "d": time.day,
        "D": time.timetuple().tm_yday,
        "H": time.hour,
        "h": (time.hour + 11) % 12 + 1,
        "m": time.minute,
        "s": time.second,
    }
    if field[0] not in numbers or (len(field) > 2 and field[0] not in "yuD"):
        raise ValueError(f"times cannot be written with '{field}' in '{part.string}'")
    return f"{numbers[field[0]]:0{len(field)}}"
