"""Find an error that a script catches with `except Exception` and ignores."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.analysis.python.parsing import parse_python
from millstream.checking.scripts.interception import call_sites

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

# What a mistake in the code raises. Other errors are about values, files and servers.
_KINDS = (NameError, AttributeError, TypeError)
_CATCH_ALL = frozenset({"Exception", "BaseException"})


def is_mistake(error: Exception) -> bool:
    """Return whether an error is a mistake in the code, wherever it runs."""
    return isinstance(error, _KINDS)


class CaughtErrors:
    """Notes the errors that the user's code raises in the block, by a trace function of Python."""

    def __init__(self) -> None:
        self._places: dict[Exception, tuple[str, int]] = {}

    def __enter__(self) -> CaughtErrors:
        self._before = sys.gettrace()
        sys.settrace(self._trace_call)
        return self

    def __exit__(self, *_raised: object) -> None:
        sys.settrace(self._before)

    def find_last(self, is_relevant: Callable[[Exception], bool] = is_mistake) -> Exception | None:
        """Return the last relevant error that a clause for all errors caught."""
        errors = reversed(self._places.items())
        return next(
            (error for error, place in errors if is_relevant(error) and _is_caught_by_all(error, *place)),
            None,
        )

    def _trace_call(self, frame: FrameType, _event: str, _value: Any) -> Any:
        if not call_sites.is_user_file(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        return self._trace_frame

    def _trace_frame(self, frame: FrameType, event: str, value: Any) -> Any:
        if event == "exception" and isinstance(value[1], Exception):
            # The outermost frame that an error reaches is the one that catches it.
            self._places[value[1]] = frame.f_code.co_filename, frame.f_lineno
        return self._trace_frame


def _is_caught_by_all(error: Exception, file: str, line: int) -> bool:
    """Return whether the clause that catches an error on a line is for all errors."""
    try:
        tree = parse_python(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)
    ]
    if not around:
        return False
    own_names = {kind.__name__ for kind in type(error).__mro__} - _CATCH_ALL
    for clause in max(around, key=lambda node: node.lineno).handlers:
        kinds = clause.type.elts if isinstance(clause.type, ast.Tuple) else [clause.type]
        names = {kind.id for kind in kinds if isinstance(kind, ast.Name)}
        if names & own_names:
            return False
        if clause.type is None or names & _CATCH_ALL:
            return True
    return False
