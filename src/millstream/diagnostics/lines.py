"""Convert between the characters of a text and its lines and columns."""

from __future__ import annotations

import re
from bisect import bisect_right

from millstream.diagnostics.finding import Span

# Line endings as editors recognise them. `str.splitlines` also splits at form feeds and U+2028.
_BREAK = re.compile(r"\r\n|\n|\r")


class TextLines:
    """A text split into lines; lines and columns count from 1, characters from 0."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def __len__(self) -> int:
        return len(self._starts)

    def line(self, number: int) -> str:
        """Return a line without its line ending; empty outside the text."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def at(self, index: int) -> tuple[int, int]:
        """Return the line and column of a character; the end of the text for an index beyond it."""
        index = min(max(index, 0), len(self.text))
        number = bisect_right(self._starts, index)
        return number, index - self._starts[number - 1] + 1

    def index(self, line: int, column: int) -> int:
        """Return the index of the character at a line and column; the end of the text for a position beyond it."""
        if line > len(self._starts):
            return len(self.text)
        return min(self._starts[line - 1] + column - 1, len(self.text))

    def span(self, file: str, start: int, stop: int) -> Span:
        """Return the span from `start` up to, but not including, `stop`."""
        line, column = self.at(start)
        end_line, end_column = self.at(max(stop, start))
        return Span(file, line, column, end_line, end_column)
