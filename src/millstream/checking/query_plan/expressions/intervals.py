"""Read durations from expressions: interval literals, interval texts and `make_interval`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.checking.query_plan.expressions.expressions import ParsedExpression

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
_ARGUMENT_UNITS = (None, None, "week", "day", "hour", "minute", "second")


def read_length(parsed: ParsedExpression) -> timedelta | None:
    """Return the duration of an expression, or None if it is not constant or contains months."""
    match parsed.kind:
        case "Literal":
            kind, value = parsed.entry.get("dataType"), parsed.entry.get("value")
            if not isinstance(kind, str) or value is None:
                return None
            if kind.startswith("interval ") and "month" not in kind and "year" not in kind:
                return timedelta(microseconds=int(value))
            return parse_interval_text(str(value)) if kind in ("interval", "string") else None
        case "Cast" | "Alias" | "KnownNullable":
            kind = parsed.entry.get("dataType")
            return read_length(parsed.inputs[0]) if not isinstance(kind, str) or "interval" in kind else None
        case "UnaryMinus":
            negated = read_length(parsed.inputs[0])
            return -negated if negated is not None else None
        case "MakeInterval" | "MakeDTInterval":
            return _from_make_interval(parsed)
        case _:
            return None


def parse_interval_text(text: str) -> timedelta | None:
    """Return the duration of a text such as `interval 1 hour 30 minutes`, or None for months or another text."""
    words = text.lower().removeprefix("interval").strip()
    parts = _PART.findall(words)
    if not parts or _PART.sub("", words).strip() or any(unit not in _UNITS for _, unit in parts):
        return None
    return sum((float(number) * _UNITS[unit] for number, unit in parts), timedelta())


def _from_make_interval(parsed: ParsedExpression) -> timedelta | None:
    units = _ARGUMENT_UNITS if parsed.kind == "MakeInterval" else _ARGUMENT_UNITS[3:]
    total = timedelta()
    for unit, argument in zip(units, parsed.inputs, strict=False):
        literal = argument.inputs[0] if argument.kind == "Cast" and argument.inputs else argument
        if literal.kind != "Literal":
            return None
        number = float(str(literal.entry.get("value") or 0))
        if number and unit is None:
            return None
        total += number * _UNITS[unit or "day"]
    return total
