"""Parse Spark's errors into a message, a fix and a position in the user's SQL or Python."""

from __future__ import annotations

import difflib
import inspect
import re
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions

from millstream.checking.compat import error_hints, star_imports
from millstream.diagnostics.failure import MillstreamError
from millstream.diagnostics.finding import Span
from millstream.frames import user_functions
from millstream.pipeline.spec_file import display_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.pipeline.model import Pipeline

# The text that Spark adds after its sentence: the SQL state, the position, the plan.
_TAIL = re.compile(
    r"\s*(?:SQLSTATE: \w{5}|;\s*line \d+,? pos|\(line \d+, pos \d+\)|;\n|\n\s*'?\w+ .*\[|== SQL).*", re.DOTALL
)
_CLASS = re.compile(r"^\s*\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*")
# How py4j and Spark add Java's stack trace to a message, and the beginning of py4j's own.
_JAVA_TRACE = re.compile(r"\s*(?:JVM stacktrace:|\n\s*at [\w.$/<>]+\().*", re.DOTALL)
_JAVA_CALL = re.compile(r"An error occurred while calling \S+\s+(?:: |Trace:\s+)?")
_POSITION = re.compile(r"line (\d+),? pos (\d+)")
_UNKNOWN_FUNCTION = re.compile(r"\[UNRESOLVED_ROUTINE\][^`]*`(\w+)`")
_UNKNOWN_COLUMN = re.compile(r"\[UNRESOLVED_COLUMN[\w.]*\].*?`([^ ]+)` cannot be resolved", re.DOTALL)
# Without ANSI mode, Spark takes a text for a number here.
_TEXT_IN_ARITHMETIC = re.compile(
    r"\[DATATYPE_MISMATCH\.BINARY_OP_WRONG_TYPE\].*\"NUMERIC\".*, not \"STRING\"", re.DOTALL
)
_SUGGESTIONS = re.compile(r"Did you mean one of the following\?\s*\[([^\]]+)\]")


def split_message(error: Exception) -> tuple[str, str]:
    """Return a sentence without a full stop, and Spark's own text with its error class."""
    if isinstance(error, MillstreamError):
        return error.what, ""
    if not isinstance(error, PySparkException):
        return f"{type(error).__name__}: {without_java_trace(str(error))}", ""
    full_text = " ".join(_TAIL.sub("", full_message(error)).split()).rstrip(";. ")
    if unknown := _UNKNOWN_FUNCTION.search(full_text):
        return f"there is no function '{unknown[1]}'", f"Spark says: {full_text}"
    sentence = _CLASS.sub("", full_text)
    first = re.split(r"(?<=[a-z`'\"]{2})\.\s+(?=[A-Z])", sentence)[0].rstrip(".:")
    return first, f"Spark says: {full_text}"


def full_message(error: PySparkException) -> str:
    """Return Spark's whole message without the JVM's stack trace."""
    return str(getattr(error, "_desc", None) or error)


def without_java_trace(message: str) -> str:
    """Return a message without the stack trace of Java that it may contain."""
    return _JAVA_TRACE.sub("", _JAVA_CALL.sub("", message))


def find_fix(error: Exception) -> str:
    """Return a fix: the names that Spark proposes, or a known hint."""
    if isinstance(error, NameError) and error.name in star_imports.ONLY_IN_SPARK_3:
        return "import it by its name; before version 4 of Spark, 'import *' imported it too"
    if not isinstance(error, PySparkException):
        return ""
    suggestions = _SUGGESTIONS.search(full_message(error))
    # Columns with this prefix carry a dead letter's reason and origin, and never appear in a spec.
    names = (
        [name for name in suggestions[1].split(", ") if not name.startswith("`_millstream_")]
        if suggestions
        else []
    )
    if unknown := _UNKNOWN_FUNCTION.search(full_message(error)):
        near = difflib.get_close_matches(unknown[1].lower(), _sql_functions(), n=1)
        return f"write {near[0].upper() if unknown[1].isupper() else near[0]}" if near else ""
    column = _UNKNOWN_COLUMN.search(full_message(error))
    if column and names:
        # Spark orders them by another distance, in which `window` may come before a column with one letter changed.
        plain = {name.rpartition("`.`")[2].strip("`").lower(): name for name in reversed(names)}
        near = difflib.get_close_matches(column[1].rpartition("`.`")[2].lower(), plain, n=1, cutoff=0.7)
        if near:
            return f"write {plain[near[0]]}"
    if _TEXT_IN_ARITHMETIC.search(full_message(error)):
        return "cast the text to a number first; before version 4, Spark did so by itself"
    return f"write one of {', '.join(names)}" if names else error_hints.find_hint(split_message(error)[1])


@cache
def _sql_functions() -> list[str]:
    """Return the names of Spark's functions, as its Python API lists them."""
    return [name for name in dir(functions) if name.islower() and not name.startswith("_")]


def error_range(error: PySparkException, sql: str) -> tuple[int, int]:
    """Return the start and end of an error in a view's SQL, or of the first word if Spark gives no position."""
    if inner := locate_operator(_streaming_subquery(error), {"": sql}):
        return inner[1:]
    for context in error.getQueryContext() or ():
        start, stop = context.startIndex(), context.stopIndex()
        if context.contextType().name == "SQL" and 0 <= start <= stop < len(sql):
            return start, stop + 1
    if position := _POSITION.search(str(error)):
        start = offset_of(sql, int(position[1]), int(position[2]))
        word = re.compile(r"\w+|\S|$").search(sql, start)
        return (word.start(), max(word.end(), word.start() + 1)) if word else (start, start + 1)
    first = re.compile(r"\w+").search(sql)
    return first.span() if first else (0, 1)


def offset_of(sql: str, line: int, column: int) -> int:
    """Return the offset of a line, counted from 1, and a column, counted from 0."""
    lines = sql.splitlines(keepends=True)
    before = sum(len(part) for part in lines[: line - 1])
    return min(before + column, max(0, len(sql) - 1))


def locate_operator(node: Any, sqls: Mapping[str, str]) -> tuple[str, int, int] | None:
    """Return the view of a plan's operator and its start and end there, if its SQL is one of `sqls`."""
    origin = node.origin() if node is not None else None
    if origin is None or not origin.sqlText().isDefined():
        return None
    view = next((name for name, sql in sqls.items() if sql == origin.sqlText().get()), None)
    if view is None or not origin.startIndex().isDefined() or not origin.stopIndex().isDefined():
        return None
    start, stop = origin.startIndex().get(), origin.stopIndex().get() + 1
    first_line = sqls[view].find("\n", start, stop)
    # Only the first line of a longer part is marked.
    return view, start, first_line if first_line > start else stop


def _streaming_subquery(error: Any) -> Any:
    """Return the subquery that must not be a stream, or None for other errors. Spark names the whole statement."""
    java: Any = getattr(error, "_origin", None)
    if error.getCondition() != "INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY" or not hasattr(java, "plan"):
        return None
    plans = java.plan().get().subqueriesAll() if java.plan().isDefined() else None
    subqueries = (plans.apply(index) for index in range(plans.size())) if plans else ()
    return next((plan for plan in subqueries if plan.isStreaming()), None)


def locate_in_function(
    error: Exception, reference: str | Callable[..., Any] | None, pipeline: Pipeline
) -> Span | None:
    """Return the innermost line of the user's function in an error's traceback, or the function's own line."""
    try:
        function = inspect.unwrap(user_functions.find_function(reference or "", pipeline.folder))
    except MillstreamError:
        return None
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    file = display_path(Path(code.co_filename))
    frames = traceback.extract_tb(error.__traceback__)
    entries = [frame for frame in frames if frame.filename == code.co_filename and frame.lineno]
    if not entries:
        return Span.point(str(file), code.co_firstlineno)
    line, last, start, stop = (
        entries[-1].lineno,
        entries[-1].end_lineno,
        entries[-1].colno,
        entries[-1].end_colno,
    )
    if line is None or line != last or start is None or stop is None:
        return Span.point(str(file), line or code.co_firstlineno)
    return Span(str(file), line, start + 1, line, stop + 1)
