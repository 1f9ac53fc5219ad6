"""Derive from a join's condition how far apart in event time its rows may be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.query.plan_model import TimeBound
from millstream.checking.query_plan.expressions.intervals import read_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from millstream.analysis.query.plan_model import Column
    from millstream.checking.query_plan.expressions.expressions import ParsedExpression

_SWAPPED = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
# The types of a cast after which Spark still knows the time.
_TIME_TYPES = ("timestamp", "byte", "short", "integer", "long", "float", "double", "decimal")
_UNITS = {
    "SECOND": 1.0,
    "MINUTE": 60.0,
    "HOUR": 3600.0,
    "DAY": 86400.0,
    "WEEK": 604800.0,
    "MILLISECOND": 0.001,
}


@dataclass(frozen=True)
class JoinBound:
    """A time bound, and whether Spark derives it from the condition too."""

    bound: TimeBound
    left: Column
    right: Column
    is_left_limited: bool
    """True if Spark can tell when a row of the left side has no more matches."""
    is_right_limited: bool
    parts: tuple[ParsedExpression, ...]
    """The comparisons that set the bound."""


@dataclass(frozen=True)
class _Line:
    """A sum of time columns and a duration: `right.ts - 5 minutes`."""

    terms: tuple[tuple[int, int], ...]
    offset: timedelta
    is_plain: bool
    """True if Spark's own helper for join state understands all parts of it."""

    def minus(self, other: _Line) -> _Line:
        terms = dict(self.terms)
        for column, factor in other.terms:
            terms[column] = terms.get(column, 0) - factor
        nonzero = tuple(sorted((column, factor) for column, factor in terms.items() if factor))
        return _Line(nonzero, self.offset - other.offset, self.is_plain and other.is_plain)


def split_conjuncts(condition: ParsedExpression) -> Iterator[ParsedExpression]:
    """Yield the parts of a condition that are combined with AND."""
    if condition.kind == "And":
        for part in condition.inputs:
            yield from split_conjuncts(part)
    else:
        yield condition


def find_bound(
    conjuncts: Iterable[ParsedExpression], left: Mapping[int, Column], right: Mapping[int, Column]
) -> JoinBound | None:
    """Return the bound that a join's conditions set. Prefer a bound between columns with a watermark."""
    ranges: dict[tuple[int, int], _Range] = {}
    for part in conjuncts:
        for kind, term, other in _comparisons(part):
            _compare(ranges, kind, (_line(term), _line(other)), left, right, part)
    if not ranges:
        return None
    first, second = max(
        ranges, key=lambda pair: (left[pair[0]].delay is not None) + (right[pair[1]].delay is not None)
    )
    return ranges[first, second].bound(left[first], right[second])


@dataclass
class _Range:
    earliest: timedelta | None = None
    latest: timedelta | None = None
    seen_earliest: bool = False
    seen_latest: bool = False
    parts: tuple[ParsedExpression, ...] = ()

    def bound(self, left: Column, right: Column) -> JoinBound:
        time_bound = TimeBound("", left.name, right.name, self.earliest, self.latest)
        return JoinBound(time_bound, left, right, self.seen_latest, self.seen_earliest, self.parts)


def _comparisons(part: ParsedExpression) -> Iterator[tuple[str, ParsedExpression, ParsedExpression]]:
    if part.kind in _SWAPPED and len(part.inputs) == 2:
        yield part.kind, part.inputs[0], part.inputs[1]
    elif part.kind == "Between" and len(part.inputs) == 3:
        yield "GreaterThanOrEqual", part.inputs[0], part.inputs[1]
        yield "LessThanOrEqual", part.inputs[0], part.inputs[2]


def _compare(
    ranges: dict[tuple[int, int], _Range],
    kind: str,
    sides: tuple[_Line | None, _Line | None],
    left: Mapping[int, Column],
    right: Mapping[int, Column],
    part: ParsedExpression,
) -> None:
    """Add the limit that one comparison sets on right minus left."""
    left_line, right_line = sides
    if left_line is None or right_line is None:
        return
    line = left_line.minus(right_line)
    factors = dict(line.terms)
    first = [column for column in factors if column in left]
    second = [column for column in factors if column in right]
    if len(factors) != 2 or len(first) != 1 or len(second) != 1:
        return
    a, b = first[0], second[0]
    if factors[a] + factors[b] != 0 or abs(factors[a]) != 1:
        return
    # right - left + offset ⋛ 0, or the same with the sides swapped.
    limit = -line.offset if factors[b] == 1 else line.offset
    comparison = kind if factors[b] == 1 else _SWAPPED[kind]
    range_ = ranges.setdefault((a, b), _Range())
    range_.parts += (part,) if part not in range_.parts else ()
    if comparison.startswith("Greater"):
        range_.earliest = limit if range_.earliest is None else max(range_.earliest, limit)
        range_.seen_earliest = range_.seen_earliest or line.is_plain
    else:
        range_.latest = limit if range_.latest is None else min(range_.latest, limit)
        range_.seen_latest = range_.seen_latest or line.is_plain


def _line(parsed: ParsedExpression) -> _Line | None:
    """Return an expression as a sum of time columns and a duration, or None if it is not one."""
    inputs = parsed.inputs
    if (duration := read_length(parsed)) is not None and parsed.entry.get("dataType") != "string":
        return _Line((), duration, is_plain=True)
    match parsed.kind:
        case "AttributeReference":
            if not str(parsed.entry.get("dataType")).startswith("timestamp") or parsed.id is None:
                return None
            return _Line(((parsed.id, 1),), timedelta(), is_plain=True)
        case "Literal":
            return _seconds(parsed)
        case "Cast" if inputs and not _keeps_time(parsed):
            return None
        case "Cast" | "Alias" | "PreciseTimestampConversion" | "KnownNullable" if inputs:
            return _line(inputs[0])
        case "UnixTimestamp" | "ToUnixTimestamp" | "UnixSeconds" if inputs:
            line = _line(inputs[0])
            return _Line(line.terms, line.offset, is_plain=False) if line else None
        case "TimestampAddInterval" | "DatetimeAdd" | "Add" | "TimeAdd" if len(inputs) >= 2:
            return _sum(inputs[0], inputs[1], subtract=False)
        case "DatetimeSub" | "Subtract" if len(inputs) >= 2:
            return _sum(inputs[0], inputs[1], subtract=True)
        case "SubtractTimestamps" if len(inputs) >= 2:
            line = _sum(inputs[0], inputs[1], subtract=True)
            return _Line(line.terms, line.offset, is_plain=False) if line else None
        case "TimestampAdd" if len(inputs) >= 2:
            return _timestamp_add(parsed)
        case _:
            return None


def _keeps_time(cast: ParsedExpression) -> bool:
    """Return whether a cast gives a time or a number of seconds; that to a date, for example, is of the whole day."""
    return str(cast.entry.get("dataType")).startswith(_TIME_TYPES)


def _sum(left: ParsedExpression, right: ParsedExpression, *, subtract: bool) -> _Line | None:
    first, second = _line(left), _line(right)
    if first is None or second is None:
        return None
    if subtract:
        return first.minus(second)
    return first.minus(_Line((), timedelta(), is_plain=True).minus(second))


def _seconds(parsed: ParsedExpression) -> _Line | None:
    """Return a number as seconds, because it is compared with a time that was cast to a number."""
    if parsed.entry.get("dataType") not in ("integer", "long", "double") or parsed.entry.get("value") is None:
        return None
    return _Line((), timedelta(seconds=float(parsed.entry["value"])), is_plain=True)


def _timestamp_add(parsed: ParsedExpression) -> _Line | None:
    """Return the sum of `timestampadd(MINUTE, 5, ts)`."""
    seconds = _UNITS.get(str(parsed.entry.get("unit")).upper())
    amount, time = parsed.inputs[0], _line(parsed.inputs[1])
    while amount.kind == "Cast":
        amount = amount.inputs[0]
    if seconds is None or time is None or amount.kind != "Literal" or amount.entry.get("value") is None:
        return None
    amount_of_time = timedelta(seconds=seconds * float(amount.entry["value"]))
    return _Line(time.terms, time.offset + amount_of_time, is_plain=False)
