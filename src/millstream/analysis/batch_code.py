"""What a function of foreachBatch or foreach does with a batch, read from its source without running it."""

from __future__ import annotations

import ast
import functools
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.analysis.batch_reading import Reading
from millstream.analysis.dataflow import BatchCode
from millstream.diagnostics.finding import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def of(function: object, shown: Callable[[str], str] = str) -> BatchCode | None:
    """What the source of a function, method, partial or foreach writer shows; None where there is no source.

    `shown` turns the path of a file into the name that findings have for it. Nothing of the user's is called.
    """
    while isinstance(function, functools.partial):
        if function.args:
            # A bound first argument moves the batch to another parameter.
            return None
        function = function.func
    owner = function if isinstance(function, type) else type(function)
    if any(hasattr(owner, name) for name in ("open", "process")) and not hasattr(function, "__code__"):
        function = getattr(owner, "open", None) or getattr(owner, "process", None)
    elif not hasattr(function, "__code__") and hasattr(owner, "__call__"):  # noqa: B004 - its class's source is read
        function = getattr(function, "__func__", None) or owner.__call__
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    try:
        text = Path(code.co_filename).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return read(text, shown(code.co_filename), code.co_firstlineno, str(code.co_name))


def referred(reference: str, folder: Path, shown: Callable[[str], str] = str) -> BatchCode | None:
    """What the function or class shows that `module:name` means below a folder; None where it is not found."""
    module, _, name = reference.partition(":")
    path = folder / (module.replace(".", "/") + ".py")
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
            method = methods.get("open") or methods.get("process")
            return read(text, shown(str(path)), _first_line(method), method.name) if method else None
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return read(text, shown(str(path)), _first_line(node), name)
    return None


def read(text: str, file: str, line: int, name: str) -> BatchCode | None:
    """What the function `name` shows whose `def`, lambda or first decorator stands on a line of a Python text.

    None when the text is not Python or no such function, or more than one lambda, begins there.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [
        (one, parent) for one, parent in _functions(tree) if line == _first_line(one) and _name(one) == name
    ]
    if len(found) != 1:
        return None
    function, parent = found[0]
    spans = functools.partial(_span, file, text.splitlines())
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(parent, ast.ClassDef) and not _static(function):
        given = given[1:]
    shown = BatchCode("a lambda" if isinstance(function, ast.Lambda) else name, spans(function))
    if name == "open" and isinstance(parent, ast.ClassDef):
        return replace(shown, by_partition=_both(function, given[:2], spans), opaque=True)
    if not given:
        return replace(shown, opaque=True)
    helpers = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    reading = Reading(given[0], given[1] if len(given) > 1 else "", helpers, spans)
    return reading.of(function, shown)


def _functions(tree: ast.AST) -> Iterator[tuple[Function, ast.AST]]:
    """Every function of a text with what it stands in."""
    for parent in ast.walk(tree):
        for one in ast.iter_child_nodes(parent):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield one, parent


def _first_line(function: Function) -> int:
    decorators: list[ast.expr] = getattr(function, "decorator_list", [])
    return min([function.lineno, *(one.lineno for one in decorators)])


def _name(function: Function) -> str:
    return "<lambda>" if isinstance(function, ast.Lambda) else function.name


def _static(function: Function) -> bool:
    decorators = getattr(function, "decorator_list", [])
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in decorators)


def _both(function: Function, names: list[str], spans: Callable[[ast.AST], Span]) -> Span | None:
    """Where partition and epoch together decide something; None when one of them is not used so."""
    body = function.body if isinstance(function.body, list) else [function.body]
    for statement in body:
        if isinstance(statement, ast.Expr):
            # A line of a log.
            continue
        used = {one.id for one in ast.walk(statement) if isinstance(one, ast.Name)}
        if len(names) == 2 and set(names) <= used:
            return spans(statement)
    return None


def _span(file: str, lines: list[str], node: ast.AST) -> Span:
    """Where a node stands; of a function, a class or a clause its first line alone."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end, end_column = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column + 1)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
        end, end_column = line, len(lines[line - 1].rstrip().encode()) if line <= len(lines) else column + 1
    return Span(file, line, _column(lines, line, column), end, _column(lines, end, end_column))


def _column(lines: list[str], line: int, offset: int) -> int:
    """A column from 1 in characters: Python counts bytes of UTF-8 from 0."""
    text = lines[line - 1] if line <= len(lines) else ""
    return len(text.encode()[:offset].decode(errors="ignore")) + 1
