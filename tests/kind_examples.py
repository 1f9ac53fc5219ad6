"""Settings with which a kind of connector can be tried: the examples of the fields that it requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.spec.base import Spec


def example_settings(kind: type[Spec]) -> dict[str, Any]:
    fields = kind.model_fields.items()
    return {name: field.examples[0] for name, field in fields if field.is_required() and field.examples}
