"""Describe the error that ends a script, with the user's line."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import ParseException, PySparkException

from millstream.checking.compat import error_parser
from millstream.checking.scripts.execution import jvm_access, module_search
from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.audit_hook import RefusedCall
from millstream.checking.scripts.interception.placeholders import Unknown
from millstream.checking.scripts.interception.sandbox import ScriptSandbox
from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.diagnostics.finding import Span

# Modules of stand-ins, which lack attributes as Python's own objects do.
_WITHOUT_ATTRIBUTES = frozenset(
    {jvm_access.__name__, module_search.__name__, Absent.__module__, Unknown.__module__}
)


@dataclass(frozen=True)
class ScriptError:
    """An error that ended the script, with the user's line."""

    what: str
    why: str
    span: Span | None
    fix: str = ""
    is_only_here: bool = False
    """True if the error has its cause in the check."""
    is_handled: bool = False
    """True if the script catches the error itself."""


def describe_error(
    error: BaseException, path: Path, texts: dict[str, call_sites.SqlText], text: str | None = None
) -> ScriptError:
    """Describe an error. `text` is the SQL that caused it, if known."""
    if isinstance(error, SyntaxError):
        location = call_sites.line_span(error.filename or str(path), error.lineno or 1)
        return ScriptError(f"the script cannot be read: {error.msg}", "", location)
    if isinstance(error, SystemExit) and isinstance(error.__context__, Exception):
        # The script ends because of the error that it handles.
        return replace(describe_error(error.__context__, path, texts, text), is_handled=True)
    if not isinstance(error, Exception):
        code = getattr(error, "code", error)
        shown = error_parser.without_java_trace(code) if isinstance(code, str) else code
        return ScriptError(f"it exits with {shown!r}", "", call_sites.error_span(error, path))
    message, reason = error_parser.split_message(error)
    span = call_sites.error_span(error, path)
    text = text or _failed_text(error, texts)
    if isinstance(error, PySparkException) and text in texts:
        span = call_sites.span_within(texts[text], *error_parser.error_range(error, text))
    return ScriptError(message, reason, span, error_parser.find_fix(error))


def _failed_text(error: Exception, texts: dict[str, call_sites.SqlText]) -> str | None:
    """Return the SQL text that caused an error: the last text that Spark received, if the error is about SQL."""
    last = next(reversed(texts), None)
    if not isinstance(error, PySparkException):
        return None
    is_part = last is not None and any(
        context.contextType().name == "SQL"
        and last[context.startIndex() : context.stopIndex() + 1] == context.fragment()
        for context in error.getQueryContext() or ()
    )
    return last if is_part or isinstance(error, ParseException) else None


def is_bug(error: Exception) -> bool:
    """Return whether an error is a bug in the replacements for Spark, and not in the script."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_expected = isinstance(error, PySparkException | MillstreamError | RefusedCall | ConnectionRefusedError)
    # Wrong arguments of the user raise at the call of a replacement.
    is_argument_error = isinstance(error, TypeError) and "argument" in str(error)
    # Python's own errors about files and attributes pass through a replacement.
    module = frames[-1].f_globals["__name__"]
    is_file_error = isinstance(error, OSError | ValueError) and module == ScriptSandbox.__module__
    is_attribute_error = isinstance(error, AttributeError) and module in _WITHOUT_ATTRIBUTES
    # C code may say that a stand-in has the wrong type, and Python then that the C code did so.
    reason = error.__cause__ if isinstance(error, SystemError) and error.__cause__ else error
    is_about_stand_in = isinstance(reason, TypeError) and f"'{Absent.__name__}'" in str(reason)
    # Without a frame of the script, the script could not even be parsed.
    has_started = any(call_sites.is_user_file(frame.f_code.co_filename) for frame in frames)
    return (
        has_started
        and not (is_expected or is_argument_error or is_file_error or is_attribute_error or is_about_stand_in)
        and call_sites.is_millstream_frame(frames[-1])
    )
