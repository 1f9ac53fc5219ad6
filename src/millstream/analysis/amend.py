"""Edits for findings whose cure is a change of the very text they mark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Edit

if TYPE_CHECKING:
    from millstream.analysis.facts import Facts
    from millstream.diagnostics.finding import Span


def marked(facts: Facts | None, span: Span | None) -> str:
    """The text that a span marks, when it stands on one line that can be read; otherwise nothing."""
    line = _line(facts, span)
    return line[span.column - 1 : span.end_column - 1] if span and line else ""


def replaced(facts: Facts | None, span: Span | None, old: str, new: str, *, safe: bool) -> Edit | None:
    """`old`, within what a span marks, made into `new`; None when it does not stand there exactly once."""
    line = _line(facts, span)
    text = marked(facts, span)
    if span is None or text.lower().count(old.lower()) != 1:
        return None
    at = span.column - 1 + text.lower().index(old.lower())
    return Edit(span.file, span.line - 1, (line[:at] + new + line[at + len(old) :],), drop=1, safe=safe)


def _line(facts: Facts | None, span: Span | None) -> str:
    if facts is None or span is None or span.line != span.end_line:
        return ""
    lines = _text(facts, span.file).splitlines()
    return lines[span.line - 1] if 0 < span.line <= len(lines) else ""


def _text(facts: Facts, file: str) -> str:
    places = facts.places
    if places.document and file == places.file:
        return places.document.text
    if file in places.texts:
        return places.texts[file]
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        # A finding in a file that cannot be read is told without an edit.
        return ""
