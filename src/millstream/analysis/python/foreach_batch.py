"""Read what a foreachBatch function or foreach writer does with a batch, without running it."""

from __future__ import annotations

import ast
import functools
from dataclasses import replace
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING

from millstream.analysis.python.foreach_batch_visitor import BatchFunctionFacts, HelperFile
from millstream.analysis.python.frame_names import FrameNames, list_parameters
from millstream.analysis.python.method_calls import is_static, name_methods
from millstream.analysis.python.parsing import count_characters, parse_or_none
from millstream.analysis.query.plan_model import BatchCode
from millstream.diagnostics.finding import Span
from millstream.pipeline.own_code import is_library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import CodeType

    Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

NO_OTHERS: Mapping[str, CodeType] = MappingProxyType({})


def read_function(function: object, display: Callable[[str], str] = str) -> BatchCode | None:
    """Read the source of a function, method, partial or foreach writer; return `None` if there is no source.

    `display` turns a file path into the name used in findings. No user code is called.
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
        text = Path(code.co_filename).read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return None
    others = _list_other_functions(function, code.co_filename)
    return read_source(
        text, display(code.co_filename), code.co_firstlineno, str(code.co_name), others, display
    )


def read_reference(reference: str, folder: Path, display: Callable[[str], str] = str) -> BatchCode | None:
    """Read the function or class that `module:name` refers to below a folder; return `None` if it is not found."""
    module, _, name = reference.partition(":")
    path = folder / (module.replace(".", "/") + ".py")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return None
    tree = parse_or_none(text)
    if tree is None:
        return None
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            methods = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
            method = methods.get("open") or methods.get("process")
            return (
                read_source(text, display(str(path)), _find_first_line(method), method.name)
                if method
                else None
            )
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return read_source(text, display(str(path)), _find_first_line(node), name)
    return None


def read_source(
    text: str,
    file: str,
    line: int,
    name: str,
    others: Mapping[str, CodeType] = NO_OTHERS,
    display: Callable[[str], str] = str,
) -> BatchCode | None:
    """Read the function `name` whose `def`, lambda or first decorator is on this line of a Python text.

    `others` are functions of other files, by the names that the text has for them. Return `None` if the text is not
    Python, or if no function or several lambdas begin there.
    """
    tree = parse_or_none(text)
    definition = None if tree is None else _find_function(tree, line, name)
    if tree is None or definition is None:
        return None
    function, parent = definition
    spans = functools.partial(_build_span, file, text.splitlines())
    parameters = list_parameters(function)
    if isinstance(parent, ast.ClassDef) and not is_static(function):
        parameters = parameters[1:]
    facts = BatchCode("a lambda" if isinstance(function, ast.Lambda) else name, spans(function))
    if name == "open" and isinstance(parent, ast.ClassDef):
        return replace(
            facts, partition_epoch_use=_find_use_of_both(function, parameters[:2], spans), is_opaque=True
        )
    if not parameters:
        return replace(facts, is_opaque=True)
    helpers = _list_helpers(tree)
    files = _add_other_functions(helpers, tree, others, display)
    batch_id = parameters[1] if len(parameters) > 1 else ""
    names = FrameNames(parameters[0], helpers)
    return BatchFunctionFacts(names, batch_id, spans, files=files).of(function, facts)


def _list_other_functions(function: object, file: str) -> dict[str, CodeType]:
    """Return the functions of a project's other files, or of other cells of a notebook, that a function may call."""
    names: dict[str, object] = getattr(function, "__globals__", {})
    codes = {name: value.__code__ for name, value in names.items() if type(value) is FunctionType}
    return {
        name: code
        for name, code in codes.items()
        if code.co_filename != file and not is_library(Path(code.co_filename))
    }


def _add_other_functions(
    helpers: dict[str, ast.FunctionDef],
    tree: ast.AST,
    others: Mapping[str, CodeType],
    display: Callable[[str], str],
) -> dict[int, HelperFile]:
    """Add the functions of other files that a text calls to its helpers. Return their files by `id()`."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    called = {function.id for function in calls if isinstance(function, ast.Name)} - helpers.keys()
    files: dict[int, HelperFile] = {}
    for name in sorted(called & others.keys()):
        code = others[name]
        try:
            text = Path(code.co_filename).read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            continue
        other = parse_or_none(text)
        definition = None if other is None else _find_function(other, code.co_firstlineno, code.co_name)
        if other is not None and definition is not None and isinstance(definition[0], ast.FunctionDef):
            helpers[name] = definition[0]
            spans = functools.partial(_build_span, display(code.co_filename), text.splitlines())
            files[id(definition[0])] = HelperFile(_list_helpers(other), spans)
    return files


def _list_helpers(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions and methods of a file by their names. The file's calls of its methods get these names."""
    return name_methods(tree) | {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _find_function(tree: ast.AST, line: int, name: str) -> tuple[Function, ast.AST] | None:
    """Return the function of a name that begins on a line, with its parent node; `None` if there is not one."""
    functions = [
        (node, parent)
        for node, parent in _list_functions(tree)
        if line == _find_first_line(node) and _get_name(node) == name
    ]
    return functions[0] if len(functions) == 1 else None


def _list_functions(tree: ast.AST) -> Iterator[tuple[Function, ast.AST]]:
    """Yield every function of a text with its parent node."""
    for parent in ast.walk(tree):
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child, parent


def _find_first_line(function: Function) -> int:
    decorators: list[ast.expr] = getattr(function, "decorator_list", [])
    return min([function.lineno, *(decorator.lineno for decorator in decorators)])


def _get_name(function: Function) -> str:
    return "<lambda>" if isinstance(function, ast.Lambda) else function.name


def _find_use_of_both(function: Function, names: list[str], spans: Callable[[ast.AST], Span]) -> Span | None:
    """Return the first statement that uses both partition and epoch; `None` if there is none."""
    body = function.body if isinstance(function.body, list) else [function.body]
    for statement in body:
        if isinstance(statement, ast.Expr):
            # A call for its effect only, such as a log line.
            continue
        names_used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if len(names) == 2 and set(names) <= names_used:
            return spans(statement)
    return None


def _build_span(file: str, lines: list[str], node: ast.AST) -> Span:
    """Return the span of a node; for a function, a class or an `except` clause only its first line."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end, end_column = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column + 1)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
        end, end_column = line, len(lines[line - 1].rstrip().encode()) if line <= len(lines) else column + 1
    return Span(
        file, line, count_characters(lines, line, column), end, count_characters(lines, end, end_column)
    )
