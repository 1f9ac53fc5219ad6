"""How many rows a file holds, by what it says at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.orc
import pyarrow.parquet

if TYPE_CHECKING:
    from pathlib import Path


def rows_in(path: Path, form: str) -> int | None:
    """The number of rows, or None for formats that do not say."""
    if form == "parquet":
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    if form == "orc":
        return int(pyarrow.orc.ORCFile(path).nrows)
    return None
