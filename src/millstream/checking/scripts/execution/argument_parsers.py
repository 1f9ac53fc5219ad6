"""Let argparse accept a command line without the arguments that a script requires."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from millstream.checking.scripts.interception import call_sites
from millstream.checking.scripts.interception.absent import Absent
from millstream.checking.scripts.interception.recording import Doubt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.checking.scripts.interception.monkeypatch import Patches
    from millstream.checking.scripts.interception.recording import Recording
    from millstream.diagnostics.finding import Span


def missing_argument(why: str, span: Span | None) -> Doubt:
    """Return the doubt about an argument that the script was not given."""
    message = "the script needs arguments, and the check used placeholder values for them"
    fix = "pass the script's arguments after its name"
    return Doubt("an argument of the script", why, span, fix, message=message)


def install(recording: Recording, patches: Patches) -> None:
    """Replace the parser's method that all others call."""
    patches.wrap(argparse.ArgumentParser, "parse_known_args", partial(_parse, recording))


def _parse(
    recording: Recording, original: Any, parser: argparse.ArgumentParser, args: Any = None, namespace: Any = None
) -> Any:  # fmt: skip
    """Parse as the script does. Required arguments that are missing are not known, and others keep their defaults."""
    usage = io.StringIO()
    try:
        with contextlib.redirect_stderr(usage):
            return original(parser, args, namespace)
    except SystemExit as error:
        required = [action for action in parser._actions if action.required]
        frame = call_sites.find_user_frame()
        is_hopeless = not error.code or not required or any(map(_is_command, required))
        try:
            if is_hopeless or frame is None:
                raise
            with _optional(required), contextlib.redirect_stderr(io.StringIO()):
                parsed, rest = original(parser, args, namespace)
        except SystemExit:
            sys.stderr.write(usage.getvalue())
            raise
    lines = [line.strip() for line in usage.getvalue().strip().splitlines() if line.strip()]
    span = call_sites.line_span(frame.f_code.co_filename, frame.f_lineno)
    doubt = recording.doubt(missing_argument("; ".join(lines[-2:]), span))
    for action in required:
        if getattr(parsed, action.dest, None) in (None, []):
            setattr(parsed, action.dest, Absent(doubt))
    return parsed, rest


@contextlib.contextmanager
def _optional(actions: list[argparse.Action]) -> Iterator[None]:
    """Let a parser do without these arguments until the block ends."""
    before = [(action.required, action.nargs, action.default) for action in actions]
    for action in actions:
        action.required, action.default = False, None
        if not action.option_strings:
            action.nargs = "*" if action.nargs in ("*", "+", argparse.REMAINDER) else "?"
    try:
        yield
    finally:
        for action, settings in zip(actions, before, strict=True):
            action.required, action.nargs, action.default = settings


def _is_command(action: argparse.Action) -> bool:
    """Return whether an argument chooses one of several parsers."""
    return isinstance(action, argparse._SubParsersAction)
