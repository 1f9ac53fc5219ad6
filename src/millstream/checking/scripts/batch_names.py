"""Find names that a function of a query uses and nothing defines: its first batch ends the query."""

from __future__ import annotations

import ast
import builtins
import dis
import itertools
import types
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from millstream.analysis.python.parsing import parse_python
from millstream.analysis.python.unbound_names import find_unbound_name
from millstream.checking.scripts.execution.retries import NOTEBOOK
from millstream.checking.scripts.interception import call_sites
from millstream.diagnostics.finding import Span
from millstream.diagnostics.spec_codes import build_finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checking.scripts.interception.recording import StartedQuery
    from millstream.checking.scripts.runner import ScriptRun
    from millstream.diagnostics.finding import Finding

_SESSION = ("spark", "sc")
_MAX_DEPTH = 3
_METHODS = sorted(name for name in dir(DataFrame) if not name.startswith("_"))
# What a DataFrame has besides in Databricks.
_OF_DATABRICKS = ("display",)


def find_undefined_names(script_run: ScriptRun) -> Iterator[Finding]:
    """Yield a finding for each query whose function, or a function that it calls, uses an undefined name."""
    if script_run.raised is not None or not script_run.is_script:
        return
    # A notebook has further names.
    known = {*NOTEBOOK, *_SESSION} if script_run.keeps_queries else set()
    if any(doubt.what.startswith("module ") for doubt in script_run.recording.doubts):
        # What a module that is not here defines with `import *` is not known.
        known.add("*")
    for query in script_run.recording.queries:
        function = getattr(query.function, "__func__", query.function)
        undefined = next(_walk(function, known, 0), None)
        if undefined is not None:
            yield _describe(query, *undefined)
        yield from _find_names_read_too_early(query, function)
        if query.format == "foreachBatch":
            yield from _find_missing_methods(query, function)


def _describe(query: StartedQuery, name: str, span: Span) -> Finding:
    fix = "define this name in the file that uses it"
    if name == "spark":
        fix = "use the session of the batch, which is .sparkSession of the function's DataFrame"
    return build_finding(
        "MS114",
        f"the function of query '{query.name}' uses the name '{name}', which is not defined",
        span,
        why="the first batch raises a NameError, which ends the query",
        fix=fix,
        query=query.name,
    )


def _find_names_read_too_early(query: StartedQuery, function: object) -> Iterator[Finding]:
    """Yield a finding for each of the query's functions that reads a local name before it assigns it."""
    for user_function in _list_functions(function, set()):
        file = user_function.__code__.co_filename
        node = _find_definition(file, user_function.__code__)
        name = find_unbound_name(node) if node is not None else None
        if name is None:
            continue
        display = call_sites.display_name(file)
        line, column = name.lineno, name.col_offset + 1
        fix = f"declare it as a name of the module: global {name.id}"
        yield build_finding(
            "MS114",
            f"the function {user_function.__name__} of query '{query.name}' reads '{name.id}' before it assigns it",
            Span(display, line, column, line, column + len(name.id)),
            why="a name that a function assigns is its own, so the read raises an UnboundLocalError",
            fix=fix if name.id in user_function.__globals__ else "assign the name before this line",
            query=query.name,
        )


def _list_functions(function: object, seen: set[object]) -> Iterator[types.FunctionType]:
    """Yield a function, and the user's functions that it calls by their names in the module."""
    is_user = isinstance(function, types.FunctionType) and call_sites.is_user_file(
        function.__code__.co_filename
    )
    if not isinstance(function, types.FunctionType) or not is_user or function.__code__ in seen:
        return
    seen.add(function.__code__)
    yield function
    for code in _list_codes(function.__code__):
        for name in code.co_names:
            yield from _list_functions(function.__globals__.get(name), seen)


def _find_definition(file: str, code: types.CodeType) -> ast.FunctionDef | None:
    """Return the syntax tree of a function; None for a lambda, or if its source is not known."""
    try:
        tree = parse_python(call_sites.read_python(file))
    except (OSError, SyntaxError, ValueError):
        return None
    return next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
            and node.name == code.co_name
            and code.co_firstlineno in (node.lineno, *(part.lineno for part in node.decorator_list))
        ),
        None,
    )


def _find_missing_methods(query: StartedQuery, function: object) -> Iterator[Finding]:
    """Yield a finding for each call of a method that the batch, which is a DataFrame, does not have."""
    if not isinstance(function, types.FunctionType) or not call_sites.is_user_file(
        function.__code__.co_filename
    ):
        return
    code = function.__code__
    is_method = isinstance(query.function, types.MethodType)
    parameters = code.co_varnames[: code.co_argcount][is_method:]
    steps = list(dis.get_instructions(code))
    if not parameters or any(step.opname == "STORE_FAST" and step.argval == parameters[0] for step in steps):
        # The function gives the name to something else.
        return
    for step, call in itertools.pairwise(steps):
        is_call = call.opname == "LOAD_METHOD" or (call.opname == "LOAD_ATTR" and "NULL|self" in call.argrepr)
        name = str(call.argval)
        if not (is_call and step.opname == "LOAD_FAST" and step.argval == parameters[0]):
            continue
        if hasattr(DataFrame, name) or name in _OF_DATABRICKS:
            continue
        near = get_close_matches(name, _METHODS, n=1)
        yield build_finding(
            "MS114",
            f"the function of query '{query.name}' calls {name}() of its batch, and a DataFrame has no such method",
            call_sites.line_span(code.co_filename, (call.positions and call.positions.lineno) or 0),
            why="the first batch raises an AttributeError, which ends the query",
            fix=f"write {near[0]}()" if near else "",
            query=query.name,
        )


def _walk(function: object, known: set[str], depth: int) -> Iterator[tuple[str, Span]]:
    """Yield the undefined names of a function and of the user's functions that it calls, with their places."""
    if not isinstance(function, types.FunctionType) or depth > _MAX_DEPTH:
        return
    file = function.__code__.co_filename
    if not call_sites.is_user_file(file):
        return
    bound = _find_bound_names(file, has_all_modules="*" not in known)
    if bound is None:
        return
    for code in _list_codes(function.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname != "LOAD_GLOBAL":
                continue
            name = str(instruction.argval)
            if name in function.__globals__:
                yield from _walk(function.__globals__[name], known, depth + 1)
            elif not (hasattr(builtins, name) or name in known or name in bound):
                place = instruction.positions
                line, column = (
                    (place and place.lineno) or code.co_firstlineno,
                    (place and place.col_offset) or 0,
                )
                yield (
                    name,
                    Span(call_sites.display_name(file), line, column + 1, line, column + 1 + len(name)),
                )


def _list_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of a function and of the functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_codes(constant)


def _find_bound_names(file: str, *, has_all_modules: bool) -> set[str] | None:
    """Return the names that a file defines anywhere outside of functions; None if it may define any name."""
    try:
        tree = parse_python(call_sites.find_file(call_sites.display_name(file)).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        is_star = isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and not has_all_modules
        is_asked = isinstance(node, ast.Name) and node.id in ("NameError", "globals", "exec", "setattr")
        if is_star or is_asked:
            return None
    names = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # What a function binds, only this function has.
            names.add(node.name)
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return names
