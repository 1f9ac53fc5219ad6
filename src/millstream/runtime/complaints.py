"""Spark's errors as words and places: what it said, and which characters of which SQL it meant."""

from __future__ import annotations

import inspect
import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from millstream.diagnostics.failure import MillstreamError
from millstream.diagnostics.finding import Span
from millstream.pipeline.load import shown
from millstream.runtime import cures, hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.pipeline.model import Pipeline

# What Spark adds after its sentence: the SQL state, the place, the plan.
_TAIL = re.compile(
    r"\s*(?:SQLSTATE: \w{5}|;\s*line \d+,? pos|\(line \d+, pos \d+\)|;\n|\n\s*'?\w+ .*\[|== SQL).*", re.DOTALL
)
_CLASS = re.compile(r"^\s*\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*")
_POSITION = re.compile(r"line (\d+),? pos (\d+)")
_SUGGESTED = re.compile(r"Did you mean one of the following\?\s*\[([^\]]+)\]")


def words(wrong: Exception) -> tuple[str, str]:
    """A sentence without a full stop, and Spark's own text with its error class."""
    if isinstance(wrong, MillstreamError):
        return wrong.what, ""
    if not isinstance(wrong, PySparkException):
        return f"{type(wrong).__name__}: {wrong}", ""
    whole = " ".join(_TAIL.sub("", text(wrong)).split()).rstrip(";. ")
    sentence = _CLASS.sub("", whole)
    first = re.split(r"(?<=[a-z`'\"]{2})\.\s+(?=[A-Z])", sentence)[0].rstrip(".:")
    return first, f"Spark says: {whole}"


def text(wrong: PySparkException) -> str:
    """All that Spark said, without the JVM's stack trace."""
    return str(getattr(wrong, "_desc", None) or wrong)


def cure(wrong: Exception) -> str:
    """The names that Spark proposes, or what is known to help."""
    if not isinstance(wrong, PySparkException):
        return ""
    found = _SUGGESTED.search(text(wrong))
    return f"write one of {found[1]}" if found else cures.cure(words(wrong)[1])


def stretch(wrong: PySparkException, sql: str) -> tuple[int, int]:
    """The characters of a view's SQL that an error is about; the first word when Spark does not say."""
    if inner := operator(_streaming_subquery(wrong), {"": sql}):
        return inner[1:]
    for context in wrong.getQueryContext() or ():
        start, stop = context.startIndex(), context.stopIndex()
        if context.contextType().name == "SQL" and 0 <= start <= stop < len(sql):
            return start, stop + 1
    if place := _POSITION.search(str(wrong)):
        start = at(sql, int(place[1]), int(place[2]))
        word = re.compile(r"\w+|\S|$").search(sql, start)
        return (word.start(), max(word.end(), word.start() + 1)) if word else (start, start + 1)
    first = re.compile(r"\w+").search(sql)
    return first.span() if first else (0, 1)


def at(sql: str, line: int, column: int) -> int:
    """The character at a line, from 1, and a column, from 0."""
    lines = sql.splitlines(keepends=True)
    before = sum(len(part) for part in lines[: line - 1])
    return min(before + column, max(0, len(sql) - 1))


def operator(node: Any, sqls: Mapping[str, str]) -> tuple[str, int, int] | None:
    """The view and the characters of an operator of a plan, where its SQL is one of `sqls`."""
    origin = node.origin() if node is not None else None
    if origin is None or not origin.sqlText().isDefined():
        return None
    view = next((name for name, sql in sqls.items() if sql == origin.sqlText().get()), None)
    if view is None or not origin.startIndex().isDefined() or not origin.stopIndex().isDefined():
        return None
    start, stop = origin.startIndex().get(), origin.stopIndex().get() + 1
    first_line = sqls[view].find("\n", start, stop)
    # A whole statement is shown by its first line.
    return view, start, first_line if first_line > start else stop


def _streaming_subquery(wrong: Any) -> Any:
    """The subquery that may not be a stream, for which Spark names the whole statement; None for other errors."""
    java: Any = getattr(wrong, "_origin", None)
    if wrong.getCondition() != "INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY" or not hasattr(java, "plan"):
        return None
    inner = java.plan().get().subqueriesAll() if java.plan().isDefined() else None
    found = (inner.apply(index) for index in range(inner.size())) if inner else ()
    return next((plan for plan in found if plan.isStreaming()), None)


def in_function(
    wrong: Exception, reference: str | Callable[..., Any] | None, pipeline: Pipeline
) -> Span | None:
    """The deepest line of the user's function that an error went through, or the function's own line."""
    try:
        function = inspect.unwrap(hooks.find(reference or "", pipeline.folder))
    except MillstreamError:
        return None
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    file = shown(Path(code.co_filename))
    frames = traceback.extract_tb(wrong.__traceback__)
    places = [frame for frame in frames if frame.filename == code.co_filename and frame.lineno]
    if not places:
        return Span.point(str(file), code.co_firstlineno)
    line, last, start, stop = places[-1].lineno, places[-1].end_lineno, places[-1].colno, places[-1].end_colno
    if line is None or line != last or start is None or stop is None:
        return Span.point(str(file), line or code.co_firstlineno)
    return Span(str(file), line, start + 1, line, stop + 1)
