"""One line of a file with a marked range, safe to print on any terminal."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.diagnostics.finding import Span
    from millstream.diagnostics.lines import TextLines

WIDTH = 100
_TAB = "    "
_SENSITIVE_NAME = (
    r"(?:pas+w(?:or)?d|passphrase|secret|token|credential|(?:access|account|api|encryption|private)[._-]?key)s?"
    r"[\w.-]*['\"]?"
)
_SECRETS = (
    # Up to the last @ of an address, because a password may contain an @.
    re.compile(r"(?<=://)(?P<before>[^/@:\s]*:)(?P<secret>(?:[^\s'\"$]|\$\$)[^\n\"]*)(?=@)"),
    # A setting on a line of YAML: everything between its quotes, or up to the end of the line.
    re.compile(rf"(?i)(?P<before>{_SENSITIVE_NAME}\s*:\s*')(?P<secret>(?:[^'$]|''|\$\$)+)(?=')"),
    re.compile(rf"(?i)(?P<before>{_SENSITIVE_NAME}\s*:\s*\")(?P<secret>(?:[^\"$\\]|\\.|\$\$)+)(?=\")"),
    re.compile(rf"(?i)(?P<before>{_SENSITIVE_NAME}\s*[:=]\s*)(?P<secret>[^\s,;&}}$#'\"*][^\s,;&}}#]*)"),
    # The path of a webhook is its secret.
    re.compile(r"(?P<before>alerts_to['\"]?\s*:\s*['\"]?https?://[^/\s]+/)(?P<secret>[^\s'\"$]+)"),
)


@dataclass(frozen=True)
class Snippet:
    """A line for output, and the blanks and carets below it."""

    text: str
    carets: str


def build_snippet(lines: TextLines, span: Span) -> Snippet | None:
    """Build the snippet of a span's first line; `None` if the text has no such line."""
    if span.line > len(lines):
        return None
    text = mask_secrets(lines.line(span.line))
    start = min(max(span.column - 1, 0), len(text))
    stop = span.end_column - 1 if span.end_line == span.line else len(text.rstrip())
    stop = min(max(stop, start + 1), max(len(text), start + 1))
    first, last = _find_window(len(text), start, stop)
    before, marked, after = (
        escape_control(text[first:start]),
        escape_control(text[start:stop][: last - start]),
        escape_control(text[stop:last]),
    )
    if first:
        before = "…" + before[1:] if before else "…"
    if last < len(text):
        marked, after = (marked, after[:-1] + "…") if after else (marked[:-1] + "…", after)
    line = (before + marked + after).rstrip()
    return Snippet(line, " " * display_width(before) + "^" * max(display_width(marked), 1))


def mask_secrets(text: str) -> str:
    """Replace each character of a likely password with `*`, so that columns do not change."""
    for pattern in _SECRETS:
        text = pattern.sub(lambda match: match["before"] + "*" * len(match["secret"]), text)
    return text


def escape_control(text: str) -> str:
    """Replace tabs with blanks, and control characters with their codes."""
    return "".join(_escape_character(char) for char in text)


def escape_lines(text: str) -> str:
    """Replace tabs and control characters in each line of a text."""
    return "\n".join(escape_control(line) for line in text.split("\n"))


def display_width(text: str) -> int:
    """Return the width of a text in terminal columns."""
    return sum(_count_columns(char) for char in text)


def _escape_character(char: str) -> str:
    if char == "\t":
        return _TAB
    # Cc controls the terminal, Cf changes the writing direction, Cs is half a character, Zl and Zp end a line.
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return f"\\x{ord(char):02x}"
    return char


def _count_columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) == "Mn":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _find_window(length: int, start: int, stop: int) -> tuple[int, int]:
    """Choose the visible part of a long line: some text before the mark, the rest after it."""
    if length <= WIDTH:
        return 0, length
    first = max(0, min(start - WIDTH // 3, length - WIDTH))
    return first, min(max(first + WIDTH, min(stop, start + WIDTH // 2)), length)
