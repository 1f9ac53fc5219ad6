"""Compute a view once, as a batch, over the newest records of its sources or over given ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from millstream.diagnostics.failure import MillstreamError
from millstream.frames.build_views import build_frames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from millstream.frames.build_views import Reader
    from millstream.pipeline.model import Pipeline, SourceEntry

# The number of newest records read from a source that can select them: enough for some windows, quick to read.
NEWEST = 100_000


def preview_rows(
    spark: SparkSession, pipeline: Pipeline, name: str, limit: int, reader: Reader | None = None
) -> tuple[list[str], list[list[Any]]]:
    """Return column names and up to `limit` rows of a view or source, newest first by its first column with a time.

    `reader` returns the raw rows of a source as a table; the default reads its newest records. Raises
    `MillstreamError` if Spark cannot compute the view as a batch.
    """
    batch = pipeline.model_copy(
        update={
            "sources": {
                key: entry.model_copy(update={"static": True}) for key, entry in pipeline.sources.items()
            }
        }
    )

    def read_newest(source: str, entry: SourceEntry) -> DataFrame:
        kind = entry.source
        if not kind.can_read_once:
            # Spark generates such rows on demand. An empty table lets other views be previewed.
            return spark.createDataFrame([], kind.columns or entry.ddl or "value STRING")
        newest = kind if pipeline.sources[source].static else kind.newest(NEWEST)
        return newest.read(spark, static=True, schema=entry.ddl)

    try:
        frame = build_frames(spark, batch, reader or read_newest)[name]
        if time := _find_time(frame):
            frame = frame.orderBy(*(column.desc_nulls_last() for column in time))
        rows = frame.limit(limit).toArrow().to_pylist(maps_as_pydicts="strict")
    except AnalysisException as error:
        raise MillstreamError(f"'{name}' cannot be computed: {error}", "see 'millstream check'") from error
    return frame.columns, [[row[column] for column in frame.columns] for row in rows]


def _find_time(frame: DataFrame) -> list[Column]:
    """Return the first column with a time, or the end of a window; nothing if there is none."""
    for field in frame.schema:
        column = F.col(f"`{field.name.replace('`', '``')}`")
        if isinstance(field.dataType, T.TimestampType | T.TimestampNTZType | T.DateType):
            return [column]
        if isinstance(field.dataType, T.StructType) and field.dataType.fieldNames() == ["start", "end"]:
            return [column["end"]]
    return []
