"""Build edits that change the text that a finding marks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.diagnostics.finding import Edit

if TYPE_CHECKING:
    from millstream.analysis.rule_context import Facts
    from millstream.diagnostics.finding import Span


def read_marked_text(facts: Facts | None, span: Span | None) -> str:
    """Return the text that a span marks, if it is on one readable line; otherwise an empty string."""
    line = _find_line(facts, span)
    return line[span.column - 1 : span.end_column - 1] if span and line else ""


def replace_in_marked_text(
    facts: Facts | None, span: Span | None, old: str, new: str, *, safe: bool
) -> Edit | None:
    """Replace `old` with `new` in the marked text; return `None` if `old` does not occur there exactly once."""
    line = _find_line(facts, span)
    text = read_marked_text(facts, span)
    if span is None or text.lower().count(old.lower()) != 1:
        return None
    start = span.column - 1 + text.lower().index(old.lower())
    return Edit(
        span.file, span.line - 1, (line[:start] + new + line[start + len(old) :],), drop=1, is_safe=safe
    )


def _find_line(facts: Facts | None, span: Span | None) -> str:
    if facts is None or span is None or span.line != span.end_line:
        return ""
    lines = _read_text(facts, span.file).splitlines()
    return lines[span.line - 1] if 0 < span.line <= len(lines) else ""


def _read_text(facts: Facts, file: str) -> str:
    places = facts.places
    if places.document and file == places.file:
        return places.document.text
    if file in places.texts:
        return places.texts[file]
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        # A finding in a file that cannot be read has no edit.
        return ""
