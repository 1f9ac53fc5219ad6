"""No secret in any answer: what a spec holds as one is replaced wherever its text turns up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from pydantic import BaseModel

from millstream.spec.secret import HIDDEN, Secret, redact

# A shorter text turns up in any word; as a password it hides nothing.
SHORTEST = 4


@dataclass(frozen=True)
class Hiding:
    """Texts that must not be told, the longest first."""

    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: BaseModel) -> Hiding:
        """The secrets that a model holds, as they are and as an address would have them."""
        found = set()
        for secret in _secrets(model):
            whole = secret.reveal()
            try:
                parts = urlsplit(whole)
                password = parts.password if parts.scheme else None
            except ValueError:
                password = None
            for one in (whole, password) if password else (whole,):
                found |= {one, unquote(one), quote(one, safe="")}
        return cls(tuple(sorted((one for one in found if len(one) >= SHORTEST), key=len, reverse=True)))

    def text(self, text: str) -> str:
        """A text without them, and without the password of any address."""
        for one in self.texts:
            if one in text:
                text = text.replace(one, HIDDEN)
        return redact(text)

    def deep(self, value: Any) -> Any:
        """Lists and mappings with every text in them treated so."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {key: self.deep(one) for key, one in value.items()}
            case list() | tuple():
                return [self.deep(one) for one in value]
        return value


def _secrets(value: Any) -> Iterable[Secret]:
    match value:
        case Secret():
            yield value
        case BaseModel():
            for name in type(value).model_fields:
                yield from _secrets(getattr(value, name))
        case Mapping():
            for one in value.values():
                yield from _secrets(one)
        case list() | tuple():
            for one in value:
                yield from _secrets(one)
