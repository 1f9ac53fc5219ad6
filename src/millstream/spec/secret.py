"""Values that must appear nowhere: passwords and addresses that carry one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic_core import CoreSchema, core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

HIDDEN = "***"
# user:password@ in an address, and password=… as a parameter of one.
_IN_ADDRESS = re.compile(r"(?<=://)([^/@:\s]*):([^@\s]*)@")
_PARAMETER = re.compile(r"((?:password|passwd|secret|token)\s*=\s*)([^&;\s]+)", re.IGNORECASE)


def redact(text: str) -> str:
    """The same text with passwords in addresses and parameters replaced by `***`."""
    return _PARAMETER.sub(rf"\1{HIDDEN}", _IN_ADDRESS.sub(rf"\1:{HIDDEN}@", text))


class Secret:
    """A text whose repr, str, JSON and pickle are `***`; only `reveal()` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for the one call that needs it."""
        return self._text

    def shown(self) -> str:
        """What may be printed."""
        return HIDDEN

    def __str__(self) -> str:
        return self.shown()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown()!r})"

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return (type(self), (self.shown(),))

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
            serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value.shown()),
        )


class SecretUrl(Secret):
    """An address that may carry a password; shown without it."""

    __slots__ = ()

    def shown(self) -> str:
        """The address with its password replaced."""
        return redact(self._text)
