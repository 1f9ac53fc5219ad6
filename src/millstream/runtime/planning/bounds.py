"""How far apart in event time a join's rows may be, from its condition however it is spelt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from millstream.analysis.dataflow import TimeBound
from millstream.runtime.planning.intervals import length

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from millstream.analysis.dataflow import Column
    from millstream.runtime.planning.expressions import Parsed

_TURNED = {
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
_UNITS = {
    "SECOND": 1.0,
    "MINUTE": 60.0,
    "HOUR": 3600.0,
    "DAY": 86400.0,
    "WEEK": 604800.0,
    "MILLISECOND": 0.001,
}


@dataclass(frozen=True)
class Bound:
    """A bound, and whether Spark's own reading of the condition arrives at it too."""

    bound: TimeBound
    left: Column
    right: Column
    limits_left: bool
    """Does Spark find when a row of the left side matches nothing more?"""
    limits_right: bool
    parts: tuple[Parsed, ...]
    """The comparisons that set it."""


@dataclass(frozen=True)
class _Line:
    """A sum of columns of time and a length: `right.ts - 5 minutes`."""

    terms: tuple[tuple[int, int], ...]
    offset: timedelta
    plain: bool
    """Is it made only of what Spark's helper for state of joins takes apart?"""

    def minus(self, other: _Line) -> _Line:
        terms = dict(self.terms)
        for column, factor in other.terms:
            terms[column] = terms.get(column, 0) - factor
        kept = tuple(sorted((column, factor) for column, factor in terms.items() if factor))
        return _Line(kept, self.offset - other.offset, self.plain and other.plain)


def conjuncts(condition: Parsed) -> Iterator[Parsed]:
    """The parts of a condition that must all hold."""
    if condition.kind == "And":
        for one in condition.inputs:
            yield from conjuncts(one)
    else:
        yield condition


def bound(condition: Parsed, left: Mapping[int, Column], right: Mapping[int, Column]) -> Bound | None:
    """The bound that a join's condition sets, between columns that have a watermark where there are several."""
    found: dict[tuple[int, int], _Range] = {}
    for part in conjuncts(condition):
        for kind, one, other in _comparisons(part):
            _compare(found, kind, (_line(one), _line(other)), left, right, part)
    if not found:
        return None
    first, second = max(
        found, key=lambda pair: (left[pair[0]].delay is not None) + (right[pair[1]].delay is not None)
    )
    return found[first, second].bound(left[first], right[second])


@dataclass
class _Range:
    earliest: timedelta | None = None
    latest: timedelta | None = None
    seen_earliest: bool = False
    seen_latest: bool = False
    parts: tuple[Parsed, ...] = ()

    def bound(self, left: Column, right: Column) -> Bound:
        told = TimeBound("", left.name, right.name, self.earliest, self.latest)
        return Bound(told, left, right, self.seen_latest, self.seen_earliest, self.parts)


def _comparisons(part: Parsed) -> Iterator[tuple[str, Parsed, Parsed]]:
    if part.kind in _TURNED and len(part.inputs) == 2:
        yield part.kind, part.inputs[0], part.inputs[1]
    elif part.kind == "Between" and len(part.inputs) == 3:
        yield "GreaterThanOrEqual", part.inputs[0], part.inputs[1]
        yield "LessThanOrEqual", part.inputs[0], part.inputs[2]


def _compare(
    found: dict[tuple[int, int], _Range],
    kind: str,
    sides: tuple[_Line | None, _Line | None],
    left: Mapping[int, Column],
    right: Mapping[int, Column],
    part: Parsed,
) -> None:
    """Note what one comparison says of right minus left."""
    one, other = sides
    if one is None or other is None:
        return
    line = one.minus(other)
    factors = dict(line.terms)
    first = [column for column in factors if column in left]
    second = [column for column in factors if column in right]
    if len(factors) != 2 or len(first) != 1 or len(second) != 1:
        return
    a, b = first[0], second[0]
    if factors[a] + factors[b] != 0 or abs(factors[a]) != 1:
        return
    # right - left + offset ⋛ 0, or the same turned round.
    limit = -line.offset if factors[b] == 1 else line.offset
    way = kind if factors[b] == 1 else _TURNED[kind]
    range_ = found.setdefault((a, b), _Range())
    range_.parts += (part,) if part not in range_.parts else ()
    if way.startswith("Greater"):
        range_.earliest = limit if range_.earliest is None else max(range_.earliest, limit)
        range_.seen_earliest = range_.seen_earliest or line.plain
    else:
        range_.latest = limit if range_.latest is None else min(range_.latest, limit)
        range_.seen_latest = range_.seen_latest or line.plain


def _line(parsed: Parsed) -> _Line | None:
    """An expression as a sum of columns of time and a length, if it is one."""
    inputs = parsed.inputs
    if (fixed := length(parsed)) is not None and parsed.entry.get("dataType") != "string":
        return _Line((), fixed, plain=True)
    match parsed.kind:
        case "AttributeReference":
            if not str(parsed.entry.get("dataType")).startswith("timestamp") or parsed.id is None:
                return None
            return _Line(((parsed.id, 1),), timedelta(), plain=True)
        case "Literal":
            return _number(parsed)
        case "Cast" | "Alias" | "PreciseTimestampConversion" | "KnownNullable" if inputs:
            return _line(inputs[0])
        case "UnixTimestamp" | "ToUnixTimestamp" | "UnixSeconds" if inputs:
            found = _line(inputs[0])
            return _Line(found.terms, found.offset, plain=False) if found else None
        case "TimestampAddInterval" | "DatetimeAdd" | "Add" | "TimeAdd" if len(inputs) >= 2:
            return _sum(inputs[0], inputs[1], back=False)
        case "DatetimeSub" | "Subtract" if len(inputs) >= 2:
            return _sum(inputs[0], inputs[1], back=True)
        case "SubtractTimestamps" if len(inputs) >= 2:
            found = _sum(inputs[0], inputs[1], back=True)
            return _Line(found.terms, found.offset, plain=False) if found else None
        case "TimestampAdd" if len(inputs) >= 2:
            return _added(parsed)
        case _:
            return None


def _sum(one: Parsed, other: Parsed, *, back: bool) -> _Line | None:
    first, second = _line(one), _line(other)
    if first is None or second is None:
        return None
    if back:
        return first.minus(second)
    return first.minus(_Line((), timedelta(), plain=True).minus(second))


def _number(parsed: Parsed) -> _Line | None:
    """A number beside a time that was cast to one is seconds."""
    if parsed.entry.get("dataType") not in ("integer", "long", "double") or parsed.entry.get("value") is None:
        return None
    return _Line((), timedelta(seconds=float(parsed.entry["value"])), plain=True)


def _added(parsed: Parsed) -> _Line | None:
    """`timestampadd(MINUTE, 5, ts)`."""
    seconds = _UNITS.get(str(parsed.entry.get("unit")).upper())
    amount, time = parsed.inputs[0], _line(parsed.inputs[1])
    while amount.kind == "Cast":
        amount = amount.inputs[0]
    if seconds is None or time is None or amount.kind != "Literal" or amount.entry.get("value") is None:
        return None
    by = timedelta(seconds=seconds * float(amount.entry["value"]))
    return _Line(time.terms, time.offset + by, plain=False)
