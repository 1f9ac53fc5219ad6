"""Records from the beginning of files, from which the schema of a source is inferred."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class FileSample:
    """The first rows of some files, in the order of the files."""

    rows: Sequence[Mapping[str, Any]]
    columns: Mapping[str, str] | None = None
    """Columns and their Spark SQL types, if the files themselves declare them."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the source that the files need, such as `header`."""
    malformed: int = 0
    """Number of rows that could not be read."""
