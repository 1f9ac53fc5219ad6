"""The base of every settings model: frozen, strict about unknown keys, documented by its fields' docstrings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """A frozen model of settings; the docstring below a field is its documentation (`spec.field_docs`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
