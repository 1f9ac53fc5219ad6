"""Locate a call in the user's own code: the file, the line and the columns of the method's name."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import py4j
import pyspark

import millstream
from millstream.analysis.python.parsing import parse_python
from millstream.diagnostics.finding import Span
from millstream.diagnostics.lines import TextLines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType


def list_library_folders() -> tuple[str, ...]:
    """Return the folders of Python, of installed packages, of Spark and of Millstream, each with a slash at its end.

    Some packages are not where Python installs them: those of a user, and those of Debian, of which a virtual
    environment may have the packages too. A folder is only one of them if Python has started with it.
    """
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    own = [str(sysconfig.get_path(name)) for name in names]
    more = [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
    packages = [str(Path(str(module.__file__)).parent) for module in (py4j, pyspark, millstream)]
    return tuple({f"{Path(place).resolve()}/" for place in (*own, *more, *packages)})


# Read before a script can change where Python finds modules.
_LIBRARY_FOLDERS = list_library_folders()

# Functions of Millstream that call the user's code. Frames above them are not the user's, whatever their file is.
_EDGES = {
    (str(Path(__file__).parents[1] / file), name)
    for file, name in (
        ("runner.py", "_run_once"),
        ("declarative/check.py", "_load_file"),
        ("declarative/flow_graph.py", "make"),
    )
}

_statements: list[Span | None] = []

# Names in findings of files that do not have the name of the user's file.
_given_names: dict[str, str] = {}

# Python texts of files that are not Python as they are.
_given_texts: dict[str, str] = {}

# The working folder of the check.
_start = [Path.cwd()]

Place = tuple[int, int, int, int]
"""First line, first column, last line, end column (exclusive). Lines count from 1, columns (bytes) from 0."""

Loop = ast.For | ast.AsyncFor | ast.While
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@cache
def is_user_file(file: str) -> bool:
    """Return whether a file is the user's, and not of Python, an installed package, Spark or Millstream."""
    return not file.startswith("<") and not str(Path(file).resolve()).startswith(_LIBRARY_FOLDERS)


def is_millstream_frame(frame: FrameType) -> bool:
    """Return whether a frame runs code of Millstream."""
    return frame.f_code.co_filename.startswith(f"{Path(str(millstream.__file__)).parent}/")


def find_user_frame() -> FrameType | None:
    """Return the innermost frame of the current thread that runs the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if _is_edge(frame):
            return None
        frame = frame.f_back
    return frame


def list_user_lines() -> tuple[tuple[str, int], ...]:
    """Return file and line of each call of the user's code that is running in the current thread, innermost first."""
    lines: list[tuple[str, int]] = []
    frame = find_user_frame()
    while frame is not None and not _is_edge(frame):
        if is_user_file(frame.f_code.co_filename):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


def current_span() -> Span | None:
    """Return the span of the user's current call, or of the SQL statement that is being turned into a query."""
    if _statements and _statements[-1] is not None:
        return _statements[-1]
    frame = find_user_frame()
    return None if frame is None else span_of(frame)


@contextmanager
def attribute_to_statement(statement: Span | None) -> Iterator[None]:
    """Attribute all calls in the block to this SQL statement, or to the user's code if it is None."""
    _statements.append(statement)
    try:
        yield
    finally:
        _statements.pop()


def span_of(frame: FrameType, instruction: int | None = None) -> Span:
    """Return the span of a frame's call at an instruction, by default the current one: method name and arguments."""
    file = frame.f_code.co_filename
    name = display_name(file)
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
    """Return the span of a line of a file, without its indentation."""
    try:
        text = Path(file).read_text(encoding="utf-8").splitlines()[line - 1]
    except (OSError, ValueError, IndexError):
        text = ""
    start = len(text) - len(text.lstrip())
    return Span(display_name(file), line, start + 1, line, max(len(text.rstrip()), start + 1) + 1)


def assigned_name(frame: FrameType | None) -> str:
    """Return the variable that a frame's call, or the call of its function, is assigned to, or ""."""
    function = ""
    while frame is not None:
        place = _position(frame.f_code, frame.f_lasti)
        target, returned = _target(frame.f_code.co_filename, place) if place else ("", False)
        if not returned:
            return target or function
        function = function or target
        frame = frame.f_back
        while frame is not None and not is_user_file(frame.f_code.co_filename):
            frame = None if _is_edge(frame) else frame.f_back
    return function


def _target(file: str, place: Place) -> tuple[str, bool]:
    """Return the name that the value at a place is assigned to, and whether it is the returning function's name."""
    for statement, name, returned in _names(file):
        is_after_start = (statement[0], statement[1]) <= (place[0], place[1])
        if is_after_start and (place[2], place[3]) <= (statement[2], statement[3]):
            return name, returned
    return "", False


def _is_edge(frame: FrameType) -> bool:
    return (frame.f_code.co_filename, frame.f_code.co_name) in _EDGES


def _position(code: CodeType, instruction: int) -> Place | None:
    position = next(islice(code.co_positions(), instruction // 2, None), None)
    if position is None or None in position:
        return None
    line, last, column, end = position
    return line or 0, column or 0, last or 0, end or 0


@cache
def _tree(file: str) -> ast.Module:
    try:
        return parse_python(read_python(file))
    except (OSError, SyntaxError, ValueError):
        # The file was deleted while it ran. Only its line numbers are known.
        return ast.Module(body=[], type_ignores=[])


@cache
def _nodes(file: str) -> dict[Place, ast.AST]:
    """Return the calls and attributes of a file by their place."""
    nodes: dict[Place, ast.AST] = {}
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Call | ast.Attribute):
            place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            nodes.setdefault(place, node)
    return nodes


@cache
def _names(file: str) -> list[tuple[Place, str, bool]]:
    """Return the assignments and returns of a file, innermost first: place, name, and whether it is a return."""
    names: list[tuple[Place, str, bool]] = []
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            names.append((place, node.targets[0].id, False))
        elif isinstance(node, ast.FunctionDef):
            for part in ast.walk(node):
                if isinstance(part, ast.Return) and part.value is not None:
                    place = (part.lineno, part.col_offset, part.end_lineno or 0, part.end_col_offset or 0)
                    names.append((place, node.name, True))
    return names[::-1]


@cache
def _loops(file: str) -> list[Loop | Function]:
    """Return the loops and the functions of a file, outermost first."""
    return [node for node in ast.walk(_tree(file)) if isinstance(node, Loop | Function)]


def find_loop() -> Loop | None:
    """Return the innermost loop around the user's current call, or around a call of the function that makes it."""
    for file, line in list_user_lines():
        around = [node for node in _loops(file) if node.lineno <= line <= (node.end_lineno or line)]
        if around and isinstance(around[-1], Loop):
            return around[-1]
    return None


def reset_caches() -> None:
    """Clear the caches of files, which may have changed, and name files relative to the current folder."""
    for cached in (_tree, _nodes, _names, _loops, is_user_file):
        cached.cache_clear()
    _start[:] = [Path.cwd()]


def give_name(file: Path, name: str) -> None:
    """Give a file another name in findings, such as `job.ipynb#cell-3` for the file of a cell."""
    _given_names[str(file)] = name


def give_text(file: Path, text: str) -> None:
    """Give a file the Python text that runs in place of its own, on the same lines."""
    _given_texts[str(file)] = text


def read_python(file: str) -> str | bytes:
    """Return the Python text that runs for a file. Raises OSError if the file cannot be read."""
    return _given_texts.get(file) or Path(file).read_bytes()


def find_file(name: str) -> Path:
    """Return the file that findings call by this name."""
    return next((Path(file) for file, label in _given_names.items() if label == name), Path(_start[0], name))


def current_file() -> str | None:
    """Return the file of the SQL statement that calls are attributed to, or of the user's innermost frame."""
    if _statements and (statement := _statements[-1]) is not None:
        return str(find_file(statement.file))
    frame = find_user_frame()
    return None if frame is None else frame.f_code.co_filename


def display_name(file: str | Path) -> str:
    """Return the name of a file in findings, even if the user's code has changed the working folder."""
    if str(file) in _given_names:
        return _given_names[str(file)]
    path, start = Path(file), _start[0]
    full_path = path if path.is_absolute() else Path.cwd() / path
    try:
        return os.path.relpath(full_path, start) if full_path.resolve().is_relative_to(start) else str(path)
    except OSError:
        return str(path)


def is_spark_call() -> bool:
    """Return whether the current call comes from Spark's own Python code or from Py4J."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if "/py4j/" in frame.f_code.co_filename or "/pyspark/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def method_span(file: str, line: int, method: str) -> Span:
    """Return the span of a method's call on a line, or of the whole line if the call is not found."""
    candidates = [
        node
        for node in _nodes(file).values()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
        and node.lineno <= line <= (node.end_lineno or line)
    ]  # fmt: skip
    on_line = [node for node in candidates if node.func.end_lineno == line]
    if len(on_line or candidates) != 1:
        return line_span(file, line)
    node = (on_line or candidates)[0]
    last, stop = node.func.end_lineno or line, node.func.end_col_offset or 0
    end = (node.end_col_offset or stop) if node.end_lineno == last else stop
    return Span(display_name(file), last, stop - len(method.encode()) + 1, last, end + 1)


@dataclass(frozen=True)
class SqlText:
    """An SQL text that the user passed to Spark, and the span of the call or statement."""

    span: Span
    text: str


def span_within(argument: SqlText, start: int, stop: int) -> Span:
    """Return the span of a part of an SQL text if the file contains the text verbatim, else of the call."""
    call, text = argument.span, argument.text
    try:
        lines = TextLines(find_file(call.file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return call
    offset = lines.text.find(text)
    if offset < 0 or not text.strip() or lines.text.find(text, offset + 1) >= 0:
        return call
    line_end = text.find("\n", start, stop)
    # Only the first line of a longer part is marked.
    return lines.span(call.file, offset + start, offset + (line_end if line_end > start else stop))


def error_span(error: BaseException, path: Path) -> Span | None:
    """Return the innermost line of the user's code in an error's traceback."""
    innermost = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if is_user_file(frame.f_code.co_filename):
            innermost = frame
    if innermost is None:
        return line_span(str(path), 1) if path.is_file() else None
    last = [entry for entry in _traceback_entries(error) if entry[0] is innermost]
    return span_of(innermost, last[-1][1] if last else None)


def _traceback_entries(error: BaseException) -> list[tuple[FrameType, int]]:
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append((entry.tb_frame, entry.tb_lasti))
        entry = entry.tb_next
    return entries


def find_statement(frame: FrameType, line: int) -> tuple[ast.stmt, list[ast.If | ast.While]] | None:
    """Return the innermost statement on a frame's line, and the conditions around it in the same function."""
    try:
        tree = parse_python(read_python(frame.f_code.co_filename))
    except (OSError, SyntaxError, ValueError):
        return None
    innermost: ast.stmt | None = None
    conditions: list[ast.If | ast.While] = []

    def search(node: ast.AST, around: list[ast.If | ast.While]) -> None:
        nonlocal innermost, conditions
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and child.lineno <= line <= (child.end_lineno or line):
                innermost, conditions = child, around
            inner = [*around, child] if isinstance(child, ast.If | ast.While) else around
            search(child, [] if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else inner)

    search(tree, [])
    return None if innermost is None else (innermost, conditions)
