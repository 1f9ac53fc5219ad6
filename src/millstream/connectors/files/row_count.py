"""Read the number of rows from a file's footer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.orc
import pyarrow.parquet

if TYPE_CHECKING:
    from pathlib import Path


def count_rows(path: Path, form: str) -> int | None:
    """Return the number of rows, or None for formats without it."""
    if form == "parquet":
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    if form == "orc":
        return int(pyarrow.orc.ORCFile(path).nrows)
    return None
