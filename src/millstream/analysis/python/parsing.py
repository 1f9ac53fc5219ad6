"""Parse the user's Python, also if it is written for a newer version than the one that runs."""

from __future__ import annotations

import ast
import threading
import warnings
from typing import TYPE_CHECKING

from millstream.analysis.python.f_strings import in_older_syntax

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

# Python 3.11 counts the depth of the tree for all threads together: two at once end with a SystemError.
_parsing = threading.RLock()


def parse_python(text: str | bytes, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a text, as `ast.parse` does, but in one thread at a time and without warnings.

    The text may have f-strings of a newer Python.
    """
    with _parsing, warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return ast.parse(text, file)
        except SyntaxError:
            older = in_older_syntax(
                text if isinstance(text, str) else text.decode("utf-8-sig", "surrogateescape")
            )
            if older is None:
                raise
            return ast.parse(older, file)


def parse_or_none(text: str) -> ast.Module | None:
    """Return the syntax tree of a text; `None` if it is not Python."""
    try:
        return parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def count_characters(lines: Sequence[str], line: int, offset: int) -> int:
    """Return a column in characters, from 1: Python counts UTF-8 bytes from 0."""
    text = lines[line - 1] if line <= len(lines) else ""
    return len(text.encode()[:offset].decode(errors="ignore")) + 1


def compile_python(text: str | bytes, file: str) -> CodeType:
    """Compile a text, which may have f-strings of a newer Python."""
    try:
        return compile(text, file, "exec")
    except SyntaxError:
        return compile(parse_python(text, file), file, "exec")
