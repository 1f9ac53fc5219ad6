"""The docstrings of fields, read when they are asked for."""

from __future__ import annotations

from pydantic import Field

from millstream.spec.base import Spec
from millstream.spec.field_docs import with_field_docs


class Base(Spec):
    """A model."""

    size: int = 1
    """How large
    it is."""
    bare: int = 2


class Derived(Base):
    """A model on top."""

    named: int = Field(default=3, description="told already")
    """Not read."""
    own: int = 4
    """Its own."""


def test_a_fields_docstring_is_its_description() -> None:
    assert with_field_docs(Base).model_fields["size"].description == "How large\nit is."


def test_a_field_without_a_docstring_has_none() -> None:
    assert with_field_docs(Base).model_fields["bare"].description is None


def test_inherited_fields_are_described_too() -> None:
    descriptions = {name: field.description for name, field in with_field_docs(Derived).model_fields.items()}

    assert descriptions == {
        "size": "How large\nit is.",
        "bare": None,
        "named": "told already",
        "own": "Its own.",
    }


def test_a_class_without_source_gives_no_description() -> None:
    result = type("Made", (Spec,), {"__annotations__": {"a": int}, "__module__": "builtins"})

    assert with_field_docs(result).model_fields["a"].description is None
