"""Rows that were wanted and rows that came, as two tables whose lines stand beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.snippet import width
from millstream.pipeline.describe import nearest
from millstream.testing.case import Difference
from millstream.testing.cells import cell, cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.testing.case import Row
    from millstream.testing.pairing import Paired

# Beside rows that differ, so many that fit are shown: they tell which rows there are at all.
_FITTING = 4
_MOST_LINES = 24
# A table of at most this many columns of a terminal can have another beside it within a hundred.
_HALF = 44
_CELL = 34
MARK = "*"
NOTHING = "(no row)"

# What stands in one line on both sides: the cells by column, or None where a side has no row.
_Line = tuple[dict[str, str] | None, dict[str, str] | None]


def sides(
    what: str,
    wanted: Sequence[Row],
    got: Sequence[Row],
    paired: Paired,
    same: Callable[[str, Any, Any], bool],
) -> Difference:
    """The difference as lines, number by number beside each other; a cell that differs has a mark on both sides."""
    columns = list(dict.fromkeys(name for row in wanted for name in row))
    if not columns:
        columns = list(dict.fromkeys(name for row in got for name in row))
    lost = _lost(columns, got)
    lines = [_unlike(wanted[one], got[other], columns, same) for one, other in paired.unlike]
    lines += [(_cells(wanted[one], columns), None) for one in paired.missing]
    lines += [(None, _cells(got[other], columns)) for other in paired.surplus]
    more = len(lines) - _MOST_LINES
    lines = lines[:_MOST_LINES]
    fitting = [(_cells(wanted[one], columns), _cells(got[other], columns)) for one, other in paired.same]
    shown = fitting[:_FITTING] if len(lines) < _MOST_LINES else []
    left, right = _tables(columns, [*lines, *shown])
    if more > 0:
        left, right = [*left, f"… and {more} more that differ"], [*right, ""]
    if len(fitting) > len(shown):
        left, right = [*left, f"… and {len(fitting) - len(shown)} more that fit"], [*right, ""]
    return Difference(f"{what}{lost}", tuple(left), tuple(right))


def _lost(columns: Sequence[str], got: Sequence[Row]) -> str:
    """A remark on columns that no row has."""
    if not got:
        return ""
    known = {name.lower(): name for row in got for name in row}
    for name in columns:
        if name.lower() not in known:
            near = nearest(name, known.values())
            hint = f"; '{near}' is near" if near else f"; there are {', '.join(known.values())}"
            return f" (there is no column '{name}'{hint})"
    return ""


def _cells(row: Row, columns: Sequence[str]) -> dict[str, str]:
    """The cells of one row by column; those that it does not name are empty."""
    small = {name.lower(): value for name, value in row.items()}
    return {name: _cut(cell(small[name.lower()])) for name in columns if name.lower() in small}


def _unlike(wanted: Row, got: Row, columns: Sequence[str], same: Callable[[str, Any, Any], bool]) -> _Line:
    """Two rows side by side, the cells that differ marked."""
    small = {name.lower(): value for name, value in got.items()}
    left, right = {}, {}
    for name in columns:
        there = name.lower() in small
        value = small.get(name.lower())
        if name not in wanted:
            right.update({name: _cut(cell(value))} if there else {})
        elif there and same(name, wanted[name], value):
            left[name], right[name] = _cut(cell(wanted[name])), _cut(cell(value))
        else:
            one, other = cells(wanted[name], value) if there else (cell(wanted[name]), "")
            one, other = _window(one, other)
            left[name], right[name] = f"{MARK}{one}", f"{MARK}{other}"
    return left, right


def _cut(text: str) -> str:
    """A text short enough for a cell."""
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _window(one: str, other: str) -> tuple[str, str]:
    """Two texts cut to what is around the first letter in which they differ."""
    if max(len(one), len(other)) <= _CELL:
        return one, other
    at = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    start = max(0, at - _CELL // 3)
    return tuple(("…" if start else "") + _cut(text[start:]) for text in (one, other))  # type: ignore[return-value]


def _tables(columns: Sequence[str], lines: Sequence[_Line]) -> tuple[list[str], list[str]]:
    """Both sides as tables, a line a row; a line a cell where the rows are too wide to stand side by side."""
    left, right = _table(columns, [one for one, _ in lines]), _table(columns, [other for _, other in lines])
    if max((width(line) for line in (*left, *right)), default=0) <= _HALF:
        return left, right
    left, right = [], []
    widest = max(map(width, columns), default=0)
    for one, other in lines:
        if left:
            left.append("")
            right.append("")
        if one is None or other is None:
            alone = one if one is not None else other or {}
            rows = [f"{name.ljust(widest)}  {alone.get(name, '')}".rstrip() for name in columns]
            blank = [NOTHING, *([""] * (len(rows) - 1))] if rows else []
            left += rows if one is not None else blank
            right += rows if other is not None else blank
            continue
        for name in columns:
            left.append(f"{name.ljust(widest)}  {one.get(name, '')}".rstrip())
            right.append(other.get(name, ""))
    return left, right


def _table(columns: Sequence[str], rows: Sequence[dict[str, str] | None]) -> list[str]:
    """One side: the names of the columns, then a line a row."""
    used = [name for name in columns if any(row and name in row for row in rows)] or list(columns)
    widths = {name: max(width(name), *(width((row or {}).get(name, "")) for row in rows), 0) for name in used}

    def line(values: dict[str, str]) -> str:
        return "  ".join(
            values.get(name, "") + " " * (widths[name] - width(values.get(name, ""))) for name in used
        ).rstrip()

    if not any(row is not None for row in rows):
        return ["", *[NOTHING for _ in rows]] if rows else [NOTHING]
    return [
        line({name: name for name in used}),
        *(NOTHING if row is None else line(row) or "(any row)" for row in rows),
    ]
