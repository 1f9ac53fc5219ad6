"""Entries of a spec whose kind is a key: `kafka: {…}` next to `format:` and `watermark:`."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from millstream.connectors import registry
from millstream.spec.base import Spec


class KindEntry(Spec):
    """Base class of the entries of sources, sinks and dead letters: one key names the kind, the rest are fields.

    Errors in the kind's settings have the location `(kind_field, field)`; an entry without a kind is an
    error of type `missing` at `kind_field`. The loader translates both into the terms of the spec.
    """

    kind_field: ClassVar[str]
    """The field that contains the kind's settings: `source`, `sink` or `box`."""
    noun: ClassVar[str]
    """The name of such an entry in messages, for example `sink`."""
    manual: ClassVar[str]
    """The folder of docs/reference that has a page for each kind."""

    @classmethod
    def kinds(cls) -> dict[str, type[Spec]]:
        """Return the kinds that such an entry may name, by key."""
        match cls.kind_field:
            case "source":
                return dict(registry.sources())
            case "sink":
                return dict(registry.sinks())
            case _:
                return dict(registry.dead_letter_stores())

    @model_validator(mode="before")
    @classmethod
    def _take_kind(cls, value: Any) -> Any:
        """Turn `{kafka: {…}, format: json}` into `{source: (kafka, {…}), format: json}`."""
        if not isinstance(value, dict) or cls.kind_field in value:
            return value
        named = [key for key in value if key in cls.kinds()]
        if len(named) > 1:
            raise PydanticCustomError(
                "kinds", "names {named}, but only one kind is allowed", {"named": " and ".join(named)}
            )
        if not named:
            return value
        rest = {key: item for key, item in value.items() if key != named[0]}
        return {**rest, cls.kind_field: (named[0], value[named[0]])}

    @field_validator("source", "sink", "box", mode="before", check_fields=False)
    @classmethod
    def _build_kind(cls, value: Any, info: ValidationInfo) -> Any:
        """Turn `(kafka, {…})` into the kind's model; a plain value is its main field."""
        if not isinstance(value, tuple):
            return value
        name, settings = value
        kind: Any = cls.kinds()[name]
        if settings is None:
            settings = {}
        elif not isinstance(settings, dict):
            settings = {kind.main: settings}
        return kind.model_validate(settings, context=info.context)
