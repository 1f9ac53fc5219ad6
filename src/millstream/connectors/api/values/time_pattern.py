"""Write times in the patterns of Spark's options, such as `timestampFormat`.

The patterns: https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

# A text in single quotes, where two quotes are one; repeats of a letter; or another character.
_PART = re.compile(r"'(?P<text>(?:[^']|'')*)'|(?P<field>(?P<letter>[A-Za-z])(?P=letter)*)|.", re.DOTALL)
_ZONE_FIELD = re.compile(r"[xX]{1,5}|Z{1,3}|Z{5}|z{1,4}|VV")
# The name of a zone is the same for two equal local times of it.
_OFFSET_FIELD = re.compile(r"[xXZ]+")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?")


def format_time(time: datetime, pattern: str, zone: tzinfo = UTC) -> str:
    """Write a time in a zone.

    Raises ValueError for a pattern with a field that is not supported, outside the years 1 to 9999 of that zone, and
    for the second of two equal local times if the pattern has no offset: Spark reads the first.
    """
    try:
        local = time.astimezone(zone)
    except OverflowError as error:
        raise ValueError(f"times cannot be written if they are as far away as {time}") from error
    parts = list(_PART.finditer(pattern))
    if local.fold and not any(_OFFSET_FIELD.fullmatch(part["field"] or "") for part in parts):
        raise ValueError(f"{time} cannot be written in '{pattern}': its local time occurs twice in {zone}")
    return "".join(_format_part(local, part) for part in parts)


def parse_zone(text: str) -> tzinfo:
    """Return a zone that is set in Spark: a region or an offset. Raises ValueError if it is not known."""
    try:
        if offset := _OFFSET.fullmatch(text):
            sign = -1 if offset["sign"] == "-" else 1
            return timezone(sign * timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0)))
        return UTC if text == "Z" else ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"times cannot be written in the zone '{text}'") from error


def _format_part(time: datetime, part: re.Match[str]) -> str:
    field = part["field"]
    if part["text"] is not None:
        return part["text"].replace("''", "'") or "'"
    if field is None:
        # An optional section, in brackets, is written.
        return "" if part[0] in "[]" else part[0]
    if _ZONE_FIELD.fullmatch(field):
        return _format_zone(time, field)
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


def _format_zone(time: datetime, field: str) -> str:
    """Return the name or the offset of the zone of a time."""
    if field[0] in "zV":
        return str(time.tzinfo)
    offset = time.strftime("%z")[:5]
    if offset == "+0000" and (field[0] == "X" or field == "ZZZZZ"):
        return "Z"
    if field in ("x", "X"):
        return offset.removesuffix("00")
    return f"{offset[:3]}:{offset[3:]}" if len(field) in (3, 5) and field != "ZZZ" else offset
