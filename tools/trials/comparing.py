"""Hold the rows of a sink against what was expected of it, and write down what they are instead."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.lines import TextLines
from trials.expected import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from millstream.pipeline.load.document import Path, YamlDocument
    from trials.expected import Held, Number

Row = dict[str, Any]
# Sums of fractions depend on the order of the rows in their last places.
_CLOSE = Decimal("1e-9")


def differences(held: Held, rows: Sequence[Row]) -> Iterator[str]:
    """What the rows have against what was expected, a sentence each."""
    if held.rows is not None and not fits(held.rows, len(rows)):
        yield f"{len(rows):,} rows, wanted {_format_number(held.rows)}"
    for column, expected in held.sum.items():
        if not any(column in row for row in rows):
            yield f"no row has a column '{column}'"
        elif not fits(expected, total := added(rows, column)):
            yield f"{column} adds up to {total:,}, wanted {_format_number(expected)}"
    for part in held.has:
        if not any(_has(row, part) for row in rows):
            nearest = _nearest(rows, part)
            yield f"no row has {_part(part)}" + (f"; the nearest has {_part(nearest)}" if nearest else "")


def fits(wanted: Number, came: Any) -> bool:
    """Is a number the one that is wanted, or within its bounds?"""
    number = _number(came)
    if number is None:
        return False
    if isinstance(wanted, Bounds):
        low, high = wanted.at_least, wanted.at_most
        return (low is None or number >= low) and (high is None or number <= high)
    goal = Decimal(str(wanted))
    return abs(number - goal) <= _CLOSE * max(abs(number), abs(goal), 1)


def added(rows: Sequence[Row], column: str) -> Decimal:
    """The sum of a column; NULL and what is no number count nothing."""
    return sum((number for row in rows if (number := _number(row.get(column))) is not None), Decimal())


def found_instead(held: Held, rows: Sequence[Row], where: Path) -> dict[Path, Any]:
    """The numbers that a run gave, by their place in the file; bounds and texts stay as they are.

    A part of a row takes its numbers from the one row that has its texts.
    """
    new: dict[Path, Any] = {}
    if not isinstance(held.rows, Bounds | None):
        new[*where, "rows"] = len(rows)
    new |= {
        (*where, "sum", column): _plain(added(rows, column))
        for column, expected in held.sum.items()
        if not isinstance(expected, Bounds)
    }
    for at, part in enumerate(held.has):
        values = {name: value for name, value in part.items() if not _counts(value)}
        alike = [row for row in rows if values and _has(row, values)]
        if len(alike) == 1:
            names = [name for name in part if name not in values and name in alike[0]]
            new |= {(*where, "has", at, name): alike[0][name] for name in names}
    return new


def rewritten(document: YamlDocument, new: Mapping[Path, Any]) -> str:
    """The text of the file with other numbers in the same places, every other byte as it is."""
    text, lines = document.text, TextLines(document.text)
    spans = [(document.values[place], value) for place, value in new.items() if place in document.values]
    for span, value in sorted(spans, key=lambda item: (item[0].line, item[0].column), reverse=True):
        start, stop = lines.index(span.line, span.column), lines.index(span.end_line, span.end_column)
        text = text[:start] + json.dumps(value) + text[stop:]
    return text


def _has(row: Row, part: Row) -> bool:
    return all(name in row and _same(expected, row[name]) for name, expected in part.items())


def _same(wanted: Any, came: Any) -> bool:
    """Are two values alike, numbers by their size and times by their instant?"""
    if wanted == came:
        return type(wanted) is type(came) or not isinstance(wanted, bool)
    if _counts(wanted):
        return fits(wanted, came)
    moment, other = _moment(wanted), _moment(came)
    return moment is not None and moment == other


def _counts(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> Decimal | None:
    """A number, also one that JSON could only tell as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _nearest(rows: Sequence[Row], part: Row) -> Row | None:
    """The columns of `part` in the row that has most of it."""
    if not rows:
        return None
    best = max(rows, key=lambda row: sum(_has(row, {name: value}) for name, value in part.items()))
    return {name: best.get(name) for name in part}


def _part(row: Row) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items())


def _format_number(number: Number) -> str:
    return str(number) if isinstance(number, Bounds) else f"{number:,}"
