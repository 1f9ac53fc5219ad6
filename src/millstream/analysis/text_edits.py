"""Build edits of one line of a spec or of its SQL, from the position of the changed value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Edit, Span
from millstream.diagnostics.lines import TextLines

if TYPE_CHECKING:
    from millstream.pipeline.load.places import ValuePositions


def replace_value(places: ValuePositions, text: str, *path: str | int, safe: bool = False) -> Edit | None:
    """Replace the value at this path with `text`; return `None` if it is not in the file, or not on one line."""
    return replace_span(places, places.value(*path), text, safe=safe) if places.has(*path) else None


def replace_span(places: ValuePositions, span: Span, text: str, *, safe: bool = False) -> Edit | None:
    """Replace a span of one line with `text`; return `None` for a span of several lines, or in an unknown file."""
    line = TextLines(places.texts.get(span.file, "")).line(span.line)
    if span.end_line != span.line or span.end_column - 1 > len(line):
        return None
    new_line = f"{line[: span.column - 1]}{text}{line[span.end_column - 1 :]}"
    return Edit(span.file, span.line - 1, (new_line,), 1, safe)
