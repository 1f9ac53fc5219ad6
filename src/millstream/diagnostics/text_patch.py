"""Apply edits to a text, line by line, without changing any other byte."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.diagnostics.finding import Edit

# The same line endings as in `TextLines`, kept with their line.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_LINE_ENDING = re.compile(r"\r\n|\n|\r")
_BYTE_ORDER_MARK = "\ufeff"


def apply_edits(text: str, edits: Iterable[Edit]) -> tuple[str, list[Edit]]:
    """Return the text after the edits, and the applied edits; of two that overlap, only the first is applied.

    An edit beyond the end of the text, or without an effect, is skipped. Inserted lines get the line ending of the
    text, and a last line without one stays so.
    """
    byte_order_mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    lines = _LINE.findall(text.removeprefix(byte_order_mark))
    ending = next((match[0] for line in lines if (match := _LINE_ENDING.search(line))), "\n")
    applied: list[Edit] = []
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.line, edit.drop)):
        if edit.line + edit.drop > len(lines) or _changes_nothing(edit, lines):
            continue
        if applied and not _is_after(applied[-1], edit):
            continue
        applied.append(edit)
    for edit in reversed(applied):
        _apply(edit, lines, ending)
    return byte_order_mark + "".join(lines), applied


def format_diff(name: str, before: str, after: str) -> str:
    """Return the unified diff of two texts, empty if they are equal; line endings are shown as LF."""
    old, new = (_LINE_ENDING.sub("\n", text).splitlines(keepends=True) for text in (before, after))
    parts = []
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def _is_after(first: Edit, second: Edit) -> bool:
    """Return whether the second edit begins after the first one; two insertions at one position do not."""
    end = first.line + first.drop
    return second.line > end or (second.line == end and first.drop > 0 and second.drop > 0)


def _changes_nothing(edit: Edit, lines: Sequence[str]) -> bool:
    """Return whether the edit would change nothing."""
    dropped = [line.rstrip("\r\n") for line in lines[edit.line : edit.line + edit.drop]]
    return dropped == list(edit.insert)


def _apply(edit: Edit, lines: list[str], ending: str) -> None:
    """Apply one edit to the list of lines."""
    stop = edit.line + edit.drop
    is_last = stop == len(lines)
    has_no_line_ending = is_last and bool(lines) and not _LINE_ENDING.search(lines[-1])
    inserted = [f"{line}{ending}" for line in edit.insert]
    if has_no_line_ending and inserted:
        inserted[-1] = inserted[-1].removesuffix(ending)
        if not edit.drop and lines:
            lines[-1] += ending
    lines[edit.line : stop] = inserted
    if has_no_line_ending and not inserted and lines:
        lines[-1] = _LINE_ENDING.sub("", lines[-1])
