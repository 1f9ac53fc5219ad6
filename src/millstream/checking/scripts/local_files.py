"""Read the columns of files that are on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.dataframe import DataFrame

from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType


def columns_of_files(spark: Any, kind: str, options: Mapping[str, str], place: str) -> StructType | None:
    """Return the columns of local files, or None if there are no files or they cannot be read."""
    path = Path(place.removeprefix("file://"))
    if "://" in place.removeprefix("file://") or not path.exists():
        return None
    reader = internals.java_session(spark).read().format(kind)
    for key, value in options.items():
        if key.lower() != "path":
            reader = reader.option(key, value)
    try:
        frame = reader.load(str(path))
    except PySparkException:
        # The folder is empty or the files have another format, so the columns are not known.
        return None
    return DataFrame(frame, spark).schema
