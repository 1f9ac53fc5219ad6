"""Format expected and actual rows as two tables side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.diagnostics.snippet import display_width
from millstream.pipeline.introspection import find_nearest
from millstream.testing.model import Difference
from millstream.testing.values.formatting import format_cell, format_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.testing.model import Row
    from millstream.testing.runner.row_matching import RowPairs

# Number of matching rows to show in addition to the differing ones, for context.
_MATCHING_SHOWN = 4
_MAX_LINES = 24
# Two tables of at most this width fit side by side in a hundred terminal columns.
_HALF_WIDTH = 44
_CELL_WIDTH = 34
MARK = "*"
NOTHING = "(no row)"

# One line of both sides: the cells by column, or None if a side has no row.
_Line = tuple[dict[str, str] | None, dict[str, str] | None]


def format_difference(
    subject: str,
    expected: Sequence[Row],
    actual: Sequence[Row],
    paired: RowPairs,
    same: Callable[[str, Any, Any], bool],
) -> Difference:
    """Return the difference as aligned lines of both sides. A differing cell is marked on both sides."""
    columns = list(dict.fromkeys(name for row in expected for name in row))
    if not columns:
        columns = list(dict.fromkeys(name for row in actual for name in row))
    note = _missing_column_note(columns, actual)
    lines = [
        _differing_pair(expected[expected_index], actual[actual_index], columns, same)
        for expected_index, actual_index in paired.differing
    ]
    lines += [(_row_cells(expected[expected_index], columns), None) for expected_index in paired.missing]
    lines += [(None, _row_cells(actual[actual_index], columns)) for actual_index in paired.surplus]
    more = len(lines) - _MAX_LINES
    lines = lines[:_MAX_LINES]
    matching = [
        (_row_cells(expected[expected_index], columns), _row_cells(actual[actual_index], columns))
        for expected_index, actual_index in paired.same
    ]
    shown_rows = matching[:_MATCHING_SHOWN] if len(lines) < _MAX_LINES else []
    expected_lines, actual_lines = _format_tables(columns, [*lines, *shown_rows])
    if more > 0:
        expected_lines, actual_lines = (
            [*expected_lines, f"… and {more} more that differ"],
            [*actual_lines, ""],
        )
    if len(matching) > len(shown_rows):
        expected_lines, actual_lines = (
            [*expected_lines, f"… and {len(matching) - len(shown_rows)} more that match"],
            [*actual_lines, ""],
        )
    return Difference(f"{subject}{note}", tuple(expected_lines), tuple(actual_lines))


def _missing_column_note(columns: Sequence[str], actual: Sequence[Row]) -> str:
    """Return a note about the first expected column that no row has."""
    if not actual:
        return ""
    known = {name.lower(): name for row in actual for name in row}
    for name in columns:
        if name.lower() not in known:
            nearest_name = find_nearest(name, known.values())
            hint = (
                f"; did you mean '{nearest_name}'?"
                if nearest_name
                else f"; the columns are {', '.join(known.values())}"
            )
            return f" (no column '{name}'{hint})"
    return ""


def _row_cells(row: Row, columns: Sequence[str]) -> dict[str, str]:
    """Return the cells of one row by column. Columns that the row does not name are left out."""
    lowered = {name.lower(): value for name, value in row.items()}
    return {name: _shorten(format_cell(lowered[name.lower()])) for name in columns if name.lower() in lowered}


def _differing_pair(
    expected: Row, actual: Row, columns: Sequence[str], same: Callable[[str, Any, Any], bool]
) -> _Line:
    """Return two rows as cells, with the differing cells marked."""
    lowered = {name.lower(): value for name, value in actual.items()}
    expected_cells, actual_cells = {}, {}
    for name in columns:
        is_present = name.lower() in lowered
        value = lowered.get(name.lower())
        if name not in expected:
            actual_cells.update({name: _shorten(format_cell(value))} if is_present else {})
        elif is_present and same(name, expected[name], value):
            expected_cells[name], actual_cells[name] = (
                _shorten(format_cell(expected[name])),
                _shorten(format_cell(value)),
            )
        else:
            expected_text, actual_text = (
                format_cells(expected[name], value) if is_present else (format_cell(expected[name]), "")
            )
            expected_text, actual_text = _clip_around_difference(expected_text, actual_text)
            expected_cells[name], actual_cells[name] = f"{MARK}{expected_text}", f"{MARK}{actual_text}"
    return expected_cells, actual_cells


def _shorten(text: str) -> str:
    """Shorten a text to the width of a cell."""
    return text if len(text) <= _CELL_WIDTH else f"{text[: _CELL_WIDTH - 1]}…"


def _clip_around_difference(first: str, second: str) -> tuple[str, str]:
    """Clip two texts to the part around their first difference."""
    if max(len(first), len(second)) <= _CELL_WIDTH:
        return first, second
    at = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    start = max(0, at - _CELL_WIDTH // 3)
    return tuple(("…" if start else "") + _shorten(text[start:]) for text in (first, second))  # type: ignore[return-value]


def _format_tables(columns: Sequence[str], lines: Sequence[_Line]) -> tuple[list[str], list[str]]:
    """Format both sides as tables: one line per row, or one line per cell if the rows are too wide."""
    expected_lines, actual_lines = (
        _format_table(columns, [expected_row for expected_row, _ in lines]),
        _format_table(columns, [actual_row for _, actual_row in lines]),
    )
    if max((display_width(line) for line in (*expected_lines, *actual_lines)), default=0) <= _HALF_WIDTH:
        return expected_lines, actual_lines
    expected_lines, actual_lines = [], []
    widest = max(map(display_width, columns), default=0)
    for expected_row, actual_row in lines:
        if expected_lines:
            expected_lines.append("")
            actual_lines.append("")
        if expected_row is None or actual_row is None:
            row = expected_row if expected_row is not None else actual_row or {}
            rows = [f"{name.ljust(widest)}  {row.get(name, '')}".rstrip() for name in columns]
            blank = [NOTHING, *([""] * (len(rows) - 1))] if rows else []
            expected_lines += rows if expected_row is not None else blank
            actual_lines += rows if actual_row is not None else blank
            continue
        for name in columns:
            expected_lines.append(f"{name.ljust(widest)}  {expected_row.get(name, '')}".rstrip())
            actual_lines.append(actual_row.get(name, ""))
    return expected_lines, actual_lines


def _format_table(columns: Sequence[str], rows: Sequence[dict[str, str] | None]) -> list[str]:
    """Format one side: a header line, then one line per row."""
    used = [name for name in columns if any(row and name in row for row in rows)] or list(columns)
    widths = {
        name: max(display_width(name), *(display_width((row or {}).get(name, "")) for row in rows), 0)
        for name in used
    }

    def line(values: dict[str, str]) -> str:
        return "  ".join(
            values.get(name, "") + " " * (widths[name] - display_width(values.get(name, ""))) for name in used
        ).rstrip()

    if not any(row is not None for row in rows):
        return ["", *[NOTHING for _ in rows]] if rows else [NOTHING]
    return [
        line({name: name for name in used}),
        *(NOTHING if row is None else line(row) or "(any row)" for row in rows),
    ]
