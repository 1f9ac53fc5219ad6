"""Redact secrets in what Python itself prints to stderr: tracebacks, also of threads, and log records."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from millstream.spec.secrets.redaction import redact

if TYPE_CHECKING:
    from types import TracebackType


def install() -> None:
    """Redact tracebacks and log records for the rest of this process."""
    sys.excepthook = _print_exception
    threading.excepthook = _print_of_thread
    sys.unraisablehook = _print_unraisable
    create_record = logging.getLogRecordFactory()

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        return redact_log_record(create_record(*args, **kwargs))

    logging.setLogRecordFactory(record)


def redact_log_record(record: logging.LogRecord) -> logging.LogRecord:
    """Remove secrets from the message and traceback of a log record, so that no handler prints them."""
    try:
        record.msg, record.args = redact(record.getMessage()), None
    except Exception:  # noqa: BLE001 - the arguments are the user's, and print themselves
        # The arguments do not fit the message. A handler reports that, with both of them.
        arguments = record.args if isinstance(record.args, tuple) else (record.args,)
        record.msg = redact(str(record.msg))
        record.args = tuple(redact(f"{argument!r}") for argument in arguments)
    if record.exc_info and record.exc_info[0] is not None:
        # Handlers print `exc_text` instead of formatting the traceback.
        record.exc_text = redact("".join(traceback.format_exception(*record.exc_info))).rstrip("\n")
    return record


def print_traceback(heading: str, error: BaseException | None) -> None:
    """Print a traceback without secrets to stderr."""
    lines = traceback.format_exception(error) if error is not None else []
    # `sys.stderr` may be None when the interpreter shuts down.
    if sys.stderr is not None:
        sys.stderr.write(redact(heading + "".join(lines)))


def _print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:  # noqa: ARG001 - a hook's signature
    print_traceback("", error)


def _print_of_thread(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_type is not SystemExit:
        name = failure.thread.name if failure.thread is not None else "unknown"
        print_traceback(f"Exception in thread {name}:\n", failure.exc_value)


def _print_unraisable(failure: sys.UnraisableHookArgs) -> None:
    heading = failure.err_msg or "Exception ignored in"
    print_traceback(f"{heading}: {failure.object!r}\n", failure.exc_value)
