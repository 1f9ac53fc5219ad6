"""Secret values that must not appear in any output: passwords, and URLs that contain one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel
from pydantic_core import CoreSchema, core_schema

from millstream.spec.secrets.redaction import HIDDEN, REDACTOR, SECRET_NAME, redact

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

__all__ = ["HIDDEN", "Secret", "SecretUrl", "WebhookUrl", "protect_settings", "protect_url", "redact"]


class Secret:
    """A text whose repr, str, JSON and pickle are `***`; only `reveal()` returns it.

    As soon as it is created, `redact` replaces it in every text of this process.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text
        self._protect()

    def _protect(self) -> None:
        REDACTOR.protect(self._text)

    def reveal(self) -> str:
        """Return the secret text, for the one call that needs it."""
        return self._text

    def redacted(self) -> str:
        """Return a text that is safe to print."""
        return HIDDEN

    def __str__(self) -> str:
        return self.redacted()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.redacted()!r})"

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return (type(self), (self.redacted(),))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def build(value: Any) -> Secret:
            return value if isinstance(value, cls) else cls(value)

        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(build, core_schema.str_schema()),
            python_schema=core_schema.no_info_after_validator_function(
                build,
                core_schema.union_schema([core_schema.is_instance_schema(cls), core_schema.str_schema()]),
            ),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value.redacted()),
        )


class SecretUrl(Secret):
    """A URL that may contain a password; shown without it."""

    __slots__ = ()

    def _protect(self) -> None:
        protect_url(self._text)

    def redacted(self) -> str:
        """Return the URL with its password redacted."""
        return redact(self._text)


class WebhookUrl(Secret):
    """An HTTP URL whose path authorizes anyone who knows it to send; shown only as its host."""

    __slots__ = ()

    def _protect(self) -> None:
        protect_url(self._text)
        authority, _, path = self._text.partition("://")[2].partition("/")
        # A path of a few letters, such as /hook, cannot be a secret.
        REDACTOR.protect(
            self._text, *(part for part in (authority.rpartition("@")[0], path) if len(part) >= _PATH)
        )

    def redacted(self) -> str:
        """Return the scheme and the host."""
        scheme, separator, rest = self._text.partition("://")
        host = rest.partition("/")[0].rpartition("@")[2].partition("?")[0]
        return f"{scheme}://{host}/{HIDDEN}" if separator and host else HIDDEN


# Shorter paths are words of a web framework.
_PATH = 8
# Fields with types by the names of columns, which the user chooses.
_COLUMN_FIELDS = ("columns", "state")
# The parameter that makes an address of a cloud store valid for anyone who knows it.
_SIGNATURE = re.compile(r"\bsig(?:nature)?\Z", re.IGNORECASE)


def protect_url(text: str) -> None:
    """Redact the password of a URL and its secret parameters wherever they occur by themselves."""
    REDACTOR.protect(*_secret_parts(text))


def protect_settings(value: object) -> None:
    """Redact the values of free settings, such as Spark's, whose names show that they are secrets."""
    match value:
        case BaseModel():
            for name in type(value).model_fields:
                if name not in _COLUMN_FIELDS:
                    protect_settings(getattr(value, name))
        case Mapping():
            for name, item in value.items():
                if SECRET_NAME.search(str(name)):
                    REDACTOR.protect(*_revealed(item))
                protect_settings(item)
        case tuple() | list():
            for item in value:
                protect_settings(item)


def _revealed(value: object) -> Iterable[str]:
    match value:
        case Secret():
            return (value.reveal(),)
        case bool():
            return ()
        case str() | int() | float():
            return (str(value),)
    return ()


def _secret_parts(text: str) -> Iterable[str]:
    scheme, separator, rest = text.partition("://")
    if not separator:
        return
    secrets = set()
    # A password that contains a raw / ? or # ends at the last @.
    user, _, password = rest.rpartition("@")[0].partition(":")
    secrets.add(password)
    try:
        split = urlsplit(text.strip())
        secrets.add(split.password or "")
        secrets |= {
            value
            for name, value in parse_qsl(split.query)
            if SECRET_NAME.search(name) or _SIGNATURE.search(name)
        }
        public = {unquote(part) for part in (split.username, split.hostname, split.path[1:]) if part}
    except ValueError:
        public = {unquote(user)}
    for part in secrets:
        # `postgres:postgres@` is not a secret, and redacting the user would reveal the password.
        yield from {part, unquote(part)} - public - {scheme}
