"""Where the user's own code made a call: file, line and the characters of the method's name."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

import millstream
from millstream.diagnostics.finding import Span
from millstream.diagnostics.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

_NOT_THE_USERS = tuple(
    {
        str(Path(place).resolve()) + "/"
        for place in (
            *(str(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
            str(Path(str(pyspark.__file__)).parent),
            str(Path(str(millstream.__file__)).parent),
        )
    }
)

# Where our code calls the user's: what called us is not the user's, whosever file it is in.
_EDGES = {
    (str(Path(__file__).with_name(file)), name)
    for file, name in (("script.py", "_once"), ("declared.py", "_registered"), ("declared.py", "_made"))
}

_statements: list[Span | None] = []

# The working folder of the check.
_start = [Path.cwd()]

Place = tuple[int, int, int, int]
"""First line, first column, last line, column after the last; lines from 1, columns (bytes) from 0."""


@cache
def is_users(file: str) -> bool:
    """Is this a file of the user's, and not of Python, of an installed package, of Spark or of ours?"""
    return not file.startswith("<") and not str(Path(file).resolve()).startswith(_NOT_THE_USERS)


def is_ours(frame: FrameType) -> bool:
    """Does a frame run code of Millstream?"""
    return frame.f_code.co_filename.startswith(f"{Path(str(millstream.__file__)).parent}/")


def users_frame() -> FrameType | None:
    """The innermost frame of the calling thread that runs the user's own code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        if _edge(frame):
            return None
        frame = frame.f_back
    return frame


def here() -> Span | None:
    """The call that the user's code is making, or the statement that is being made a query."""
    if _statements and _statements[-1] is not None:
        return _statements[-1]
    frame = users_frame()
    return None if frame is None else span_of(frame)


@contextmanager
def making(statement: Span | None) -> Iterator[None]:
    """What is made meanwhile is made by this statement of SQL; None for what a Python function makes."""
    _statements.append(statement)
    try:
        yield
    finally:
        _statements.pop()


def span_of(frame: FrameType, instruction: int | None = None) -> Span:
    """The call that a frame is making, or was at an instruction: the method's name with its arguments."""
    file = frame.f_code.co_filename
    name = named(file)
    place = _position(frame.f_code, frame.f_lasti if instruction is None else instruction)
    if place is None:
        return Span.point(name, frame.f_lineno)
    node = _nodes(file).get(place)
    attribute = node.func if isinstance(node, ast.Call) else node
    if node is None or not isinstance(attribute, ast.Attribute):
        line, column, last, end = place
        return Span(name, line, column + 1, *((last, end + 1) if last == line else (line, column + 2)))
    line, stop = attribute.end_lineno or place[0], attribute.end_col_offset or 0
    start = stop - len(attribute.attr.encode())
    return Span(name, line, start + 1, line, (place[3] if place[2] == line else stop) + 1)


def line_span(file: str, line: int) -> Span:
    """A whole line of a file, from its first character that is no space."""
    try:
        text = Path(file).read_text(encoding="utf-8").splitlines()[line - 1]
    except (OSError, ValueError, IndexError):
        text = ""
    start = len(text) - len(text.lstrip())
    return Span(named(file), line, start + 1, line, max(len(text.rstrip()), start + 1) + 1)


def name_of(frame: FrameType | None) -> str:
    """The variable that a frame's call is being assigned to, there or where its function was called; else empty."""
    function = ""
    while frame is not None:
        place = _position(frame.f_code, frame.f_lasti)
        target, returned = _target(frame.f_code.co_filename, place) if place else ("", False)
        if not returned:
            return target or function
        function = function or target
        frame = frame.f_back
        while frame is not None and not is_users(frame.f_code.co_filename):
            frame = None if _edge(frame) else frame.f_back
    return function


def _target(file: str, place: Place) -> tuple[str, bool]:
    """The name that the value at a place is given, and whether it is the function's that returns it."""
    for statement, name, returned in _names(file):
        inside = (statement[0], statement[1]) <= (place[0], place[1])
        if inside and (place[2], place[3]) <= (statement[2], statement[3]):
            return name, returned
    return "", False


def _edge(frame: FrameType) -> bool:
    return (frame.f_code.co_filename, frame.f_code.co_name) in _EDGES


def _position(code: CodeType, instruction: int) -> Place | None:
    found = next(islice(code.co_positions(), instruction // 2, None), None)
    if found is None or None in found:
        return None
    line, last, column, end = found
    return line or 0, column or 0, last or 0, end or 0


@cache
def _tree(file: str) -> ast.Module:
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        # A file that went away while it ran: its places are lines only.
        return ast.Module(body=[], type_ignores=[])


@cache
def _nodes(file: str) -> dict[Place, ast.AST]:
    """Calls and attributes of a file by their place."""
    found: dict[Place, ast.AST] = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Call | ast.Attribute):
            place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            found.setdefault(place, node)
    return found


@cache
def _names(file: str) -> list[tuple[Place, str, bool]]:
    """Statements that give a value a name, the innermost first, and whether they return it."""
    found: list[tuple[Place, str, bool]] = []
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            found.append((place, node.targets[0].id, False))
        elif isinstance(node, ast.FunctionDef):
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and part.value is not None:
                    place = (part.lineno, part.col_offset, part.end_lineno or 0, part.end_col_offset or 0)
                    found.append((place, node.name, True))
    return found[::-1]


def begin() -> None:
    """Drop what was read of files, which may have changed; their names count from the folder of this moment."""
    for kept in (_tree, _nodes, _names, is_users):
        kept.cache_clear()
    _start[:] = [Path.cwd()]


def named(file: str | Path) -> str:
    """A file as findings name it, wherever the user's code has gone meanwhile."""
    path, start = Path(file), _start[0]
    whole = path if path.is_absolute() else Path.cwd() / path
    try:
        return os.path.relpath(whole, start) if whole.resolve().is_relative_to(start) else str(path)
    except OSError:
        return str(path)


def through_spark() -> bool:
    """Is the running call made by Spark's own Python code, or by Py4J for it?"""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_users(frame.f_code.co_filename):
        if "/py4j/" in frame.f_code.co_filename or "/pyspark/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def method_span(file: str, line: int, method: str) -> Span:
    """The name of a method where it is called on a line; the whole line where it is not found."""
    fitting = [
        node
        for node in _nodes(file).values()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
        and node.lineno <= line <= (node.end_lineno or line)
    ]  # fmt: skip
    exact = [node for node in fitting if node.func.end_lineno == line]
    if len(exact or fitting) != 1:
        return line_span(file, line)
    node = (exact or fitting)[0]
    last, stop = node.func.end_lineno or line, node.func.end_col_offset or 0
    end = (node.end_col_offset or stop) if node.end_lineno == last else stop
    return Span(named(file), last, stop - len(method.encode()) + 1, last, end + 1)


@dataclass(frozen=True)
class Given:
    """An SQL text that the user gave to Spark, and the call or place that gave it."""

    span: Span
    text: str


def within(given: Given, start: int, stop: int) -> Span:
    """Characters of a text that Spark was given, where the file has it as it is, else the call."""
    call, text = given.span, given.text
    try:
        lines = Lines(Path(_start[0], call.file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return call
    found = lines.text.find(text)
    if found < 0 or not text.strip() or lines.text.find(text, found + 1) >= 0:
        return call
    first = text.find("\n", start, stop)
    # A whole statement is shown by its first line.
    return lines.span(call.file, found + start, found + (first if first > start else stop))
