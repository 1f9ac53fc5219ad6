"""One line of a file with a stretch of it marked, safe to print on any terminal."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Span
    from millstream.diagnostics.lines import Lines

WIDTH = 100
_TAB = "    "
_SECRETS = (
    re.compile(r"(?<=://)(?P<before>[^/@:\s]*:)(?P<secret>[^@\s$]+)(?=@)"),
    re.compile(
        r"(?i)(?P<before>(?:pas+w(?:or)?d|secret|token|credential)s?['\"]?\s*[:=]\s*)(?P<secret>[^\s,;&}$#]+)"
    ),
)


@dataclass(frozen=True)
class Snippet:
    """A line as it is shown, and the blanks and carets below it."""

    text: str
    marks: str


def snippet(lines: Lines, span: Span) -> Snippet | None:
    """The first line of a span, or None when the text has no such line."""
    if span.line > len(lines):
        return None
    text = mask(lines.line(span.line))
    start = min(max(span.column - 1, 0), len(text))
    stop = span.end_column - 1 if span.end_line == span.line else len(text.rstrip())
    stop = min(max(stop, start + 1), max(len(text), start + 1))
    first, last = _window(len(text), start, stop)
    before, marked, after = (
        printable(text[first:start]),
        printable(text[start:stop][: last - start]),
        printable(text[stop:last]),
    )
    if first:
        before = "…" + before[1:] if before else "…"
    if last < len(text):
        marked, after = (marked, after[:-1] + "…") if after else (marked[:-1] + "…", after)
    shown = (before + marked + after).rstrip()
    return Snippet(shown, " " * width(before) + "^" * max(width(marked), 1))


def mask(text: str) -> str:
    """The text with what looks like a password starred, each character for one, so that columns hold."""
    for pattern in _SECRETS:
        text = pattern.sub(lambda found: found["before"] + "*" * len(found["secret"]), text)
    return text


def printable(text: str) -> str:
    """The text without what a terminal would obey: tabs become blanks, control characters their codes."""
    return "".join(_shown(char) for char in text)


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(_columns(char) for char in text)


def _shown(char: str) -> str:
    if char == "\t":
        return _TAB
    # Cc obeys, Cf turns the writing direction, Cs is half a character, Zl and Zp end a line.
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return f"\\x{ord(char):02x}"
    return char


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) == "Mn":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _window(length: int, start: int, stop: int) -> tuple[int, int]:
    """Which part of a long line to show: some before the mark, the rest after it."""
    if length <= WIDTH:
        return 0, length
    first = max(0, min(start - WIDTH // 3, length - WIDTH))
    return first, min(max(first + WIDTH, min(stop, start + WIDTH // 2)), length)
