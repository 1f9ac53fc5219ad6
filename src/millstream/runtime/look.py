"""Compute a view once over the newest records of its sources, as a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from millstream.diagnostics.failure import MillstreamError
from millstream.runtime.assemble import assemble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry

# Of a source that can tell, so many of its newest records are read: enough for some windows, quick to read.
NEWEST = 100_000


def look(spark: SparkSession, pipeline: Pipeline, name: str, limit: int) -> tuple[list[str], list[list[Any]]]:
    """Column names and up to `limit` rows of a view or source, computed over the newest input.

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
        if not kind.static:
            # Spark makes such rows as they are asked for; an empty table lets other views be looked at.
            return spark.createDataFrame([], kind.columns or entry.ddl or "value STRING")
        newest = kind if pipeline.sources[source].static else kind.newest(NEWEST)
        return newest.read(spark, static=True, schema=entry.ddl)

    try:
        frame = assemble(spark, batch, reader)[name]
        rows = frame.limit(limit).collect()
    except AnalysisException as wrong:
        raise MillstreamError(f"'{name}' cannot be computed: {wrong}", "see 'millstream check'") from wrong
    return frame.columns, [list(row) for row in rows]
