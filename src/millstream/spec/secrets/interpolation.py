"""Replace variables in a spec: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/run/secrets/x}`, `$$`."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.spec.secrets.redaction import REDACTOR, SECRET_NAME
from millstream.spec.secrets.secret import protect_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PLACE = re.compile(r"\$\$|\$\{(?P<inside>[^{}]*)(?P<end>\}?)")
_VARIABLE = re.compile(
    r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<how>[-?])(?P<rest>.*))?\Z", re.DOTALL
)
_FILE = "file:"
# A variable such as KAFKA_PASSWORD_FILE contains the location of a secret, not the secret.
_SECRET_LOCATION = re.compile(r"_(?:FILE|PATH|DIR|NAME|ENDPOINT|ENDPOINT_UR[LI])\Z")


@dataclass(frozen=True)
class UnsetVariable:
    """A variable without a value: its characters `start` up to `stop` in the text, the message, and a fix."""

    start: int
    stop: int
    message: str
    fix: str


@dataclass(frozen=True)
class Reference:
    """One `${…}` of a text: the name of a variable and its default, or the path of a secret's file."""

    name: str
    is_file: bool = False
    default: str | None = None


def list_references(text: str) -> Iterator[Reference]:
    """Yield what the variables of a text refer to, without their values; none for one that cannot be parsed."""
    for match in _PLACE.finditer(text):
        inside = match["inside"]
        if inside is None or not match["end"]:
            continue
        if inside.startswith(_FILE):
            yield Reference(inside.removeprefix(_FILE), is_file=True)
        elif parsed := _VARIABLE.match(inside):
            yield Reference(parsed["name"], default=parsed["rest"] if parsed["how"] == "-" else None)


def interpolate(text: str, env: Mapping[str, str], folder: Path) -> tuple[str, list[UnsetVariable]]:
    """Replace the variables in a text, and return those without a value.

    A default applies if the variable is unset or empty, as in a shell. Files are relative to `folder`.
    """
    unset_variables: list[UnsetVariable] = []

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        try:
            return _value(match["inside"], bool(match["end"]), env, folder)
        except _NoValue as error:
            unset_variables.append(UnsetVariable(match.start(), match.end(), error.message, error.fix))
            return match[0]

    return _PLACE.sub(replacement, text), unset_variables


class _NoValue(Exception):
    """Raised for a variable without a value."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message, self.fix = message, fix


def _value(inside: str, closed: bool, env: Mapping[str, str], folder: Path) -> str:
    """Return the value of one `${…}`."""
    if not closed:
        raise _NoValue(
            "'${' is opened and never closed", "close it with '}', or write '$${' for the text itself"
        )
    if inside.startswith(_FILE):
        secret = _read_secret(folder / inside.removeprefix(_FILE))
        _protect(secret, is_secret=True)
        return secret
    match = _VARIABLE.match(inside)
    if match is None:
        raise _NoValue(
            f"'${{{inside}}}' is not a variable",
            "write ${NAME}, ${NAME:-default} or ${NAME:?message}; '$$' is a dollar sign",
        )
    name, operator, rest = match["name"], match["how"], match["rest"]
    value = env.get(name)
    if value or (value is not None and operator is None):
        _protect(value, is_secret=bool(SECRET_NAME.search(name) and not _SECRET_LOCATION.search(name)))
        return value
    if operator == "-":
        return rest
    fix = f"set it in the environment or in a .env file next to the spec, or add a default: ${{{name}:-…}}"
    raise _NoValue(f"the variable {name} is not set" + (f": {rest}" if operator == "?" and rest else ""), fix)


def _protect(value: str, *, is_secret: bool) -> None:
    """Redact a secret that the spec contains, in whatever field, and the secret parts of a URL."""
    protect_url(value)
    if is_secret:
        REDACTOR.protect(value)


def _read_secret(path: Path) -> str:
    """Return the text of a secret's file without the line end. Refuses a file that other users may read."""
    try:
        if path.stat().st_mode & stat.S_IROTH:
            raise _NoValue(f"the secret file {path} can be read by every user", f"run 'chmod 600 {path}'")
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise _NoValue(
            f"the secret file {path} is not UTF-8 text", "write the secret as UTF-8 text"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a path"
        raise _NoValue(
            f"the secret file {path} cannot be read: {reason}", "create the file, or name another"
        ) from None
