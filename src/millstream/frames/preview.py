"""Compute a view once over the newest records of its sources, as a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from millstream.diagnostics.failure import MillstreamError
from millstream.frames.build_views import build_frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry

# The number of newest records read from a source that can select them: enough for some windows, quick to read.
NEWEST = 100_000


def preview_rows(
    spark: SparkSession, pipeline: Pipeline, name: str, limit: int
) -> tuple[list[str], list[list[Any]]]:
    """Return column names and up to `limit` rows of a view or source, computed over the newest input.

    Raises `MillstreamError` for a view over a source that exists only as a stream.
    """
    batch = pipeline.model_copy(
        update={
            "sources": {
                key: entry.model_copy(update={"static": True}) for key, entry in pipeline.sources.items()
            }
        }
    )

    def reader(source: str, entry: SourceEntry) -> DataFrame:
        kind = entry.source
        if not kind.can_read_once:
            # Spark generates such rows on demand. An empty table lets other views be previewed.
            return spark.createDataFrame([], kind.columns or entry.ddl or "value STRING")
        newest = kind if pipeline.sources[source].static else kind.newest(NEWEST)
        return newest.read(spark, static=True, schema=entry.ddl)

    try:
        frame = build_frames(spark, batch, reader)[name]
        rows = frame.limit(limit).collect()
    except AnalysisException as error:
        raise MillstreamError(f"'{name}' cannot be computed: {error}", "see 'millstream check'") from error
    return frame.columns, [list(row) for row in rows]
