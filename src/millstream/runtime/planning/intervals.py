"""Lengths of time out of expressions: interval literals, their texts, and `make_interval`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.runtime.planning.expressions import Parsed

_PART = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-z]+?)s?\b")
_UNITS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "sec": timedelta(seconds=1),
    "millisecond": timedelta(milliseconds=1),
    "microsecond": timedelta(microseconds=1),
}
_MADE = (None, None, "week", "day", "hour", "minute", "second")


def length(parsed: Parsed) -> timedelta | None:
    """The length that an expression stands for; None when it is not fixed, or counts months."""
    match parsed.kind:
        case "Literal":
            kind, value = parsed.entry.get("dataType"), parsed.entry.get("value")
            if not isinstance(kind, str) or value is None:
                return None
            if kind.startswith("interval ") and "month" not in kind and "year" not in kind:
                return timedelta(microseconds=int(value))
            return spoken(str(value)) if kind in ("interval", "string") else None
        case "Cast" | "Alias" | "KnownNullable":
            kind = parsed.entry.get("dataType")
            return length(parsed.inputs[0]) if not isinstance(kind, str) or "interval" in kind else None
        case "UnaryMinus":
            found = length(parsed.inputs[0])
            return -found if found is not None else None
        case "MakeInterval" | "MakeDTInterval":
            return _made(parsed)
        case _:
            return None


def spoken(text: str) -> timedelta | None:
    """`interval 1 hour 30 minutes` as a length; None for months and for what is no interval."""
    words = text.lower().removeprefix("interval").strip()
    parts = _PART.findall(words)
    if not parts or _PART.sub("", words).strip() or any(unit not in _UNITS for _, unit in parts):
        return None
    return sum((float(number) * _UNITS[unit] for number, unit in parts), timedelta())


def _made(parsed: Parsed) -> timedelta | None:
    units = _MADE if parsed.kind == "MakeInterval" else _MADE[3:]
    total = timedelta()
    for unit, one in zip(units, parsed.inputs, strict=False):
        given = one.inputs[0] if one.kind == "Cast" and one.inputs else one
        if given.kind != "Literal":
            return None
        number = float(str(given.entry.get("value") or 0))
        if number and unit is None:
            return None
        total += number * _UNITS[unit or "day"]
    return total
