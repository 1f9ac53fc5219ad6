"""Edits applied to a text, line by line, with every other byte left as it is."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.diagnostics.finding import Edit

# What Lines takes for the end of a line, kept with its line.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_END = re.compile(r"\r\n|\n|\r")
_MARK = "\ufeff"


def patched(text: str, edits: Iterable[Edit]) -> tuple[str, list[Edit]]:
    """The text with the edits that do not overlap, the first of two that do, and which were made.

    An edit that goes beyond the text, or asks for what stands there already, is left out. Lines that come take the
    line ending of their neighbours, and a last line without one stays so.
    """
    mark = _MARK if text.startswith(_MARK) else ""
    lines = _LINE.findall(text.removeprefix(mark))
    ending = next((found[0] for line in lines if (found := _END.search(line))), "\n")
    made: list[Edit] = []
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.line, edit.drop)):
        if edit.line + edit.drop > len(lines) or _idle(edit, lines):
            continue
        if made and not _apart(made[-1], edit):
            continue
        made.append(edit)
    for edit in reversed(made):
        _make(edit, lines, ending)
    return mark + "".join(lines), made


def unified(name: str, before: str, after: str) -> str:
    """The difference between two texts as a patch, empty when there is none; ends of lines are shown as LF."""
    old, new = (_END.sub("\n", text).splitlines(keepends=True) for text in (before, after))
    parts = []
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def _apart(one: Edit, other: Edit) -> bool:
    """Does the second begin after all that the first touches? Two insertions at one place do not."""
    end = one.line + one.drop
    return other.line > end or (other.line == end and one.drop > 0 and other.drop > 0)


def _idle(edit: Edit, lines: Sequence[str]) -> bool:
    """Would the edit change nothing?"""
    dropped = [line.rstrip("\r\n") for line in lines[edit.line : edit.line + edit.drop]]
    return dropped == list(edit.insert)


def _make(edit: Edit, lines: list[str], ending: str) -> None:
    """Make one edit in the list of lines."""
    stop = edit.line + edit.drop
    last = stop == len(lines)
    open_end = last and bool(lines) and not _END.search(lines[-1])
    come = [f"{line}{ending}" for line in edit.insert]
    if open_end and come:
        come[-1] = come[-1].removesuffix(ending)
        if not edit.drop and lines:
            lines[-1] += ending
    lines[edit.line : stop] = come
    if open_end and not come and lines:
        lines[-1] = _END.sub("", lines[-1])
