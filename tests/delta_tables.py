"""Rows of Delta tables and Parquet files, read without Spark, which takes thirty times as long for a few rows."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
from deltalake import DeltaTable

if TYPE_CHECKING:
    from pathlib import Path


def read_rows(path: Path | str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows, with these columns or all, as `collect` gives them: times are those of this machine's zone."""
    return _rows(DeltaTable(str(path)).to_pyarrow_table(columns=list(columns) or None))


def read_parquet_rows(folder: Path | str, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of the Parquet files below a folder, likewise. Subfolders may be `name=value`."""
    files = pyarrow.dataset.dataset(str(folder), format="parquet", partitioning="hive")
    return _rows(files.to_table(columns=list(columns) or None))


def _rows(table: pyarrow.Table) -> list[tuple[Any, ...]]:
    return list(zip(*([_to_local(value) for value in column.to_pylist()] for column in table), strict=True))


def _to_local(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    return value
