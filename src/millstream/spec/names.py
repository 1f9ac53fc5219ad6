"""Names of columns: one, or a list of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_several, json_schema_input_type=str | tuple[str, ...])]
"""Column names; a bare name is a list of one."""
