"""Variables in a spec: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/run/secrets/x}` and `$$`."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PLACE = re.compile(r"\$\$|\$\{(?P<inside>[^{}]*)(?P<end>\}?)")
_VARIABLE = re.compile(
    r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<how>[-?])(?P<rest>.*))?\Z", re.DOTALL
)
_FILE = "file:"


@dataclass(frozen=True)
class Unset:
    """A variable without a value: its characters `start` up to `stop` of the text, what is wrong, a cure."""

    start: int
    stop: int
    message: str
    fix: str


def interpolate(text: str, env: Mapping[str, str], folder: Path) -> tuple[str, list[Unset]]:
    """The text with its variables replaced, and what could not be.

    A default counts when the variable is unset or empty, as in a shell. Files are relative to `folder`.
    """
    wrong: list[Unset] = []

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        try:
            return _value(found["inside"], bool(found["end"]), env, folder)
        except _NoValue as none:
            wrong.append(Unset(found.start(), found.end(), none.message, none.fix))
            return found[0]

    return _PLACE.sub(value, text), wrong


class _NoValue(Exception):
    """A place that has no value, and why."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message, self.fix = message, fix


def _value(inside: str, closed: bool, env: Mapping[str, str], folder: Path) -> str:
    """What one `${…}` stands for."""
    if not closed:
        raise _NoValue(
            "'${' is opened and never closed", "close it with '}', or write '$${' for the text itself"
        )
    if inside.startswith(_FILE):
        return _secret(folder / inside.removeprefix(_FILE))
    form = _VARIABLE.match(inside)
    if form is None:
        raise _NoValue(
            f"'${{{inside}}}' is not a variable",
            "write ${NAME}, ${NAME:-default} or ${NAME:?message}; '$$' is a dollar",
        )
    name, how, rest = form["name"], form["how"], form["rest"]
    given = env.get(name)
    if given or (given is not None and how is None):
        return given
    if how == "-":
        return rest
    fix = f"set it in the environment or in a .env file beside the spec, or give a default: ${{{name}:-…}}"
    raise _NoValue(f"the variable {name} is not set" + (f": {rest}" if how == "?" and rest else ""), fix)


def _secret(path: Path) -> str:
    """The text of a secret's file without the line end; refused when others may read it."""
    try:
        if path.stat().st_mode & stat.S_IROTH:
            raise _NoValue(f"the secret file {path} can be read by every user", f"run 'chmod 600 {path}'")
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise _NoValue(f"the secret file {path} holds no text", "write the secret as UTF-8 text") from None
    except (OSError, ValueError) as failed:
        reason = getattr(failed, "strerror", None) or "it is no path"
        raise _NoValue(
            f"the secret file {path} cannot be read: {reason}", "make the file, or name another"
        ) from None
