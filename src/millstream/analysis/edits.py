"""Edits of a line of a spec or of its SQL, made from the place of what they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Edit, Span
from millstream.diagnostics.lines import Lines

if TYPE_CHECKING:
    from millstream.pipeline.places import Places


def instead(places: Places, text: str, *path: str | int, safe: bool = False) -> Edit | None:
    """Write `text` for the value at this place; None where it is not written in the file, or not on one line."""
    return swap(places, places.value(*path), text, safe=safe) if places.has(*path) else None


def swap(places: Places, span: Span, text: str, *, safe: bool = False) -> Edit | None:
    """Write `text` for a stretch of one line; None for a stretch of several, or in a file that is not known."""
    line = Lines(places.texts.get(span.file, "")).line(span.line)
    if span.end_line != span.line or span.end_column - 1 > len(line):
        return None
    whole = f"{line[: span.column - 1]}{text}{line[span.end_column - 1 :]}"
    return Edit(span.file, span.line - 1, (whole,), 1, safe)
