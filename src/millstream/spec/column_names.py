"""Column names in a spec: a single name or a list."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def _wrap_single_name(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


KnownNames = Annotated[
    tuple[str, ...], BeforeValidator(_wrap_single_name, json_schema_input_type=str | tuple[str, ...])
]
"""Column names; a bare name is a list of one."""
