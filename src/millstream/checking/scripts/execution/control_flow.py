"""Find out whether a stand-in, or a table without rows, decided the way on which a script fails."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import replace
from functools import partial
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql.classic.dataframe import DataFrame

from millstream.analysis.python.parsing import parse_python
from millstream.checking.compat.error_parser import without_java_trace
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import as_if_with_rows, expected, note_decision
from millstream.checking.scripts.interception.recording import Doubt
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import FrameType

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import Recording

# Methods that give a script the rows of a frame, or something about them.
_TAKING_ROWS = (
    "collect", "count", "first", "head", "isEmpty", "tail", "take", "toLocalIterator", "toPandas",
)  # fmt: skip
# What Python says of a call that does not fit its function, whatever the values are.
_WRONG_CALL = re.compile(r"\(\) (?:missing|takes|got an unexpected keyword|got multiple values)")
_QUOTED = re.compile(r"'(\w+)'")
_NO_ROWS = "sources have no rows in a check, and the script needs a row here"
# Not a local variable of `take`, in whose frames the cause of an error is looked for.
_ROW = Doubt("a row of a source", "sources have no rows in a check", None)
# Methods of Spark that check the columns for a model, which they also do without rows.
_CHECKS_OF_COLUMNS = re.compile(r"\b(?:transformSchema|SchemaUtils|validateAndTransform\w*)\b")
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_COMPOUND = ast.If | ast.While | ast.For | ast.With | ast.FunctionDef | ast.ClassDef | ast.Try
_LITERALS = (
    ast.Constant | ast.List | ast.Dict | ast.Set | ast.Tuple | ast.UnaryOp | ast.unaryop | ast.expr_context
)


def install(recording: Recording, patches: Patches) -> None:
    """Note where a script takes the rows of a source that is empty only in a check.

    In a run in which what is not known is true, a frame without rows has one that is not known.
    """

    def take(name: str, original: Any, frame: DataFrame, *args: Any, **named: Any) -> Any:
        caller = call_sites.find_user_frame()
        if not recording.has_emptied_sources or caller is None:
            return original(frame, *args, **named)
        note_decision(_ROW, caller)
        recording.has_taken_rows = True
        result = original(frame, *args, **named)
        # PySpark's own methods and libraries need rows of Spark.
        is_own_call = caller is sys._getframe(2)
        if not expected.are_true or not is_own_call or name == "toPandas":
            return result
        result = list(result) if name == "toLocalIterator" else result
        noted = (each for each in recording.doubts if each.what == _ROW.what)
        known = next(noted, None) or replace(_ROW, span=call_sites.current_span())
        with_row = as_if_with_rows(result, known)
        if with_row is not result:
            recording.doubt(known)
        return iter(with_row) if name == "toLocalIterator" else with_row

    for name in _TAKING_ROWS:
        patches.wrap(DataFrame, name, partial(take, name))


def find_decision(
    error: BaseException, frames: Sequence[tuple[FrameType, int]], named: Sequence[ast.AST], span: Any
) -> Doubt | None:
    """Return the doubt that decided with which values a statement fails, or that it runs; None if there is none.

    `frames` are those of the user's code with their lines, the innermost one last. `named` are the statement there
    and the conditions around it, whose names count.
    """
    if not expected.decisions or not _depends_on_values(error):
        return None
    frame, line = frames[-1]
    decision = None
    if isinstance(error, SystemExit) or isinstance(named[0], ast.Raise):
        # Where another branch or the loop would have returned, the script does not come to its own end.
        decisions = _list_decisions(frame.f_code.co_filename, line)
        decision = next((each for each in decisions if each[1] < line), None)
    decision = decision or _find_of_names(error, frames, named) or _find_of_functions(frame, named)
    if decision is None:
        return None
    file, at, doubt = decision
    place = f"line {at}" if file == frame.f_code.co_filename else f"{call_sites.display_name(file)}:{at}"
    text = without_java_trace(str(error))
    return Doubt(
        "the result of this statement",
        f"{doubt.what} is not known here, and {place} depends on it: with the real value, the statement may not fail",
        span,
        message=f"this statement fails in the check: {type(error).__name__}{text and f': {text}'}",
    )


def find_unset_name(error: BaseException, frame: FrameType, recording: Recording, span: Any) -> Doubt | None:
    """Return the doubt about a name that a `try` would have set, which the check ended by refusing a connection."""
    is_ended = recording.has_refused_connection or recording.has_servers
    if not (isinstance(error, NameError) and is_ended):
        return None
    handled = [node for node in ast.walk(_read(frame.f_code.co_filename)) if isinstance(node, ast.Try)]
    bodies = [ast.Module(body=node.body, type_ignores=[]) for node in handled if node.handlers]
    # Python does not set `name` for a local variable.
    name = _QUOTED.search(str(error))
    if name is None or not any(list(_list_bindings(body, name[1])) for body in bodies):
        return None
    return Doubt("the answer of a server", "a check does not connect to it", span)


def find_missing_row(
    error: BaseException, library: Sequence[FrameType], recording: Recording, span: Any
) -> Doubt | None:
    """Return the doubt about rows of a source that the script needs, asserts something of, or learns from.

    `library` are the frames of libraries in which the error is raised, outermost first.
    """
    is_missing_value = isinstance(error, IndexError | KeyError | StopIteration | ZeroDivisionError) or (
        isinstance(error, TypeError | AttributeError) and "NoneType" in str(error)
    )
    if recording.has_emptied_sources and (is_missing_value or _needs_rows(error, library)):
        return Doubt("a row of a source", _NO_ROWS, span)
    if isinstance(error, AssertionError) and (recording.has_emptied_sources or recording.doubts):
        return Doubt("what this assertion compares", "sources have no rows in a check", span)
    return None


def _needs_rows(error: BaseException, library: Sequence[FrameType]) -> bool:
    """Return whether Spark ML fails over a table without rows, and not because of its columns."""
    if not isinstance(error, Py4JJavaError | CapturedException) or isinstance(error, AnalysisException):
        return False
    of_models = [frame for frame in library if str(frame.f_globals.get("__name__")).startswith("pyspark.ml.")]
    values = [value for frame in of_models for value in frame.f_locals.values()]
    tables = [value for value in values if isinstance(value, DataFrame)]
    if not any(map(_is_empty, tables)):
        return False
    trace = str(error) if isinstance(error, Py4JJavaError) else str(error._stackTrace)
    return _CHECKS_OF_COLUMNS.search(trace) is None


def _is_empty(table: DataFrame) -> bool:
    """Return whether a table has no rows; False if Spark cannot read it."""
    try:
        return bool(internals.java_frame(table).isEmpty())
    except (Py4JJavaError, PySparkException):
        return False


def find_expected_failure(statement: ast.stmt, file: str, span: Any) -> Doubt | None:
    """Return the doubt about a `raise` that ends a `try`: the script expects that what comes before it fails."""
    if not isinstance(statement, ast.Raise):
        return None
    for node in ast.walk(_read(file)):
        if not isinstance(node, ast.Try):
            continue
        has_calls = any(isinstance(part, ast.Call) for each in node.body[:-1] for part in ast.walk(each))
        ends = [*(node.body[-1:] if has_calls else []), *node.orelse[:1]]
        if node.handlers and any(
            isinstance(end, ast.Raise) and end.lineno == statement.lineno for end in ends
        ):
            why = "the script expects an error of the statement before it, which a check may not run"
            return Doubt("whether this statement is reached", why, span)
    return None


def walk_header(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without those of the statements inside it."""
    body: list[ast.AST] = []
    if isinstance(node, _COMPOUND):
        body = [child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
    skipped = {id(inner) for child in body for inner in ast.walk(child)}
    yield from (part for part in ast.walk(node) if id(part) not in skipped)


_Decision = tuple[str, int, Doubt]
"""A file, the line on which a value that is not known decides, and the doubt about the value."""


def _depends_on_values(error: BaseException) -> bool:
    """Return whether other values could have kept an error of Python from being raised."""
    match error:
        case PySparkException() | SyntaxError() | ImportError() | RecursionError():
            return False
        case AttributeError(obj=owner):
            return not _is_of_code(owner)
        case TypeError():
            return _WRONG_CALL.search(str(error)) is None
        case _:
            return isinstance(error, Exception | SystemExit)


def _is_of_code(value: Any) -> bool:
    """Return whether a value is part of the code: a module, a function, a class, an object of Spark."""
    return isinstance(value, ModuleType | FunctionType | type) or type(value).__module__.startswith(
        "pyspark."
    )


def _list_decisions(file: str, line: int) -> list[_Decision]:
    """Return the decisions in the function around a line of a file, or outside of all functions."""
    tree = _read(file)
    scope = _find_scope(tree, line)
    return [
        (file, at, doubt)
        for (where, at), doubt in expected.decisions.items()
        if where == file and _find_scope(tree, at) is scope
    ]


def _find_of_names(
    error: BaseException, frames: Sequence[tuple[FrameType, int]], named: Sequence[ast.AST]
) -> _Decision | None:
    """Return what decided a value that the statement reads, or one that a caller of its function gives to it."""
    names = {error.name} if isinstance(error, NameError) else set(_list_names(named))
    for frame, line in reversed(frames):
        if frame is not frames[-1][0]:
            statement = call_sites.find_statement(frame, line)
            names = set(_list_names([statement[0]])) if statement else set()
        for name in sorted(filter(None, names)):
            if (decision := _find_change(frame, line, name)) is not None:
                return decision
        if not names & set(frame.f_code.co_varnames[: frame.f_code.co_argcount]):
            break
    return None


def _find_of_functions(frame: FrameType, named: Sequence[ast.AST]) -> _Decision | None:
    """Return what decided the result of a function of the user's that the statement calls."""
    for part in named:
        for node in walk_header(part):
            function = _find_function(frame, node.func) if isinstance(node, ast.Call) else None
            if function is None or not call_sites.is_user_file(function.__code__.co_filename):
                continue
            code = function.__code__
            last = max(line for *_, line in code.co_lines() if line)
            for decision in _list_decisions(code.co_filename, last):
                if code.co_firstlineno < decision[1] <= last:
                    return decision
    return None


def _find_function(frame: FrameType, called: ast.expr) -> FunctionType | None:
    """Return the function that a call names, without calling anything."""
    match called:
        case ast.Name(id=name):
            value = frame.f_locals.get(name, frame.f_globals.get(name))
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            holder = frame.f_locals.get(owner, frame.f_globals.get(owner))
            value = inspect.getattr_static(holder, name, None)
        case _:
            return None
    return value if isinstance(value, FunctionType) else None


def _list_names(parts: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that statements read, and those of attributes with a dot before them."""
    for part in parts:
        for node in walk_header(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield node.id
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield f".{node.attr}"


def _find_change(frame: FrameType, line: int, name: str) -> _Decision | None:
    """Return the decision inside or after which a name gets its value, if it may be another one without it."""
    if _is_of_code(frame.f_locals.get(name, frame.f_globals.get(name))):
        return None
    file = frame.f_code.co_filename
    tree = _read(file)
    scope = _find_scope(tree, line) if name in frame.f_code.co_varnames else tree
    for place, value in _list_bindings(scope, name):
        is_literal = value is not None and all(isinstance(node, _LITERALS) for node in ast.walk(value))
        for (where, at), doubt in expected.decisions.items():
            is_beside = where == file and _find_scope(tree, at) is _find_scope(tree, place)
            is_inside = is_beside and place in _find_branch(tree, at)
            if is_inside or not (is_literal or (is_beside and place < at)):
                return where, at, doubt
    return None


def _list_bindings(scope: ast.AST, name: str) -> Iterator[tuple[int, ast.expr | None]]:
    """Yield the lines that assign to a name or change its value, with the value if it is written there."""
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                places: list[ast.expr] = targets
            case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                places = [target]
            case ast.AugAssign(target=target) | ast.For(target=target) | ast.withitem(optional_vars=target):
                places, value = [target] if target else [], None
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
                # The method may change the value: `names.append(name)`.
                places, value = [owner], None
            case _:
                continue
        for place in places:
            for part in ast.walk(place):
                is_name = isinstance(part, ast.Name) and part.id == name
                is_attribute = isinstance(part, ast.Attribute) and f".{part.attr}" == name
                if is_name or is_attribute:
                    yield place.lineno, value


def _find_branch(tree: ast.AST, line: int) -> range:
    """Return the lines of the innermost statement on a line: all those of a condition or a loop."""
    inside = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line)
    ]
    return range(inside[-1].lineno, (inside[-1].end_lineno or line) + 1) if inside else range(line, line + 1)


def _find_scope(tree: ast.AST, line: int) -> ast.AST:
    """Return the innermost function around a line, or the tree."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _FUNCTIONS) and node.lineno < line <= (node.end_lineno or line)
    ]
    return around[-1] if around else tree


def _read(file: str) -> ast.AST:
    try:
        return parse_python(call_sites.read_python(file))
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
