"""Compute the batch result: each query's rows, computed once over the complete input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.api.ddl import find_column, quote_name
from millstream.frames.build_views import build_frames, read_source
from millstream.pipeline.model import OnMalformed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.frames.build_views import Reader
    from millstream.pipeline.model import Pipeline, SourceEntry


def compute_batch_results(
    spark: SparkSession, pipeline: Pipeline, reader: Reader | None = None
) -> dict[str, DataFrame]:
    """Return each query's rows as a batch computes them, by the query's name.

    `reader` returns the raw rows of a source, undecoded, as a static DataFrame with the columns of its kind's
    `read`. The default reads all that the source contains. It is called with the entry as a table (`static`).

    A batch has no watermark: no row is late, and of rows with the same keys of `drop_duplicates_within_watermark`
    only one is kept in the whole input. Spark's own errors pass through.
    """
    static = {name: entry.model_copy(update={"static": True}) for name, entry in pipeline.sources.items()}

    def read_all(name: str, entry: SourceEntry) -> DataFrame:
        raw = reader(name, entry) if reader else read_source(spark, name, entry)
        return raw if pipeline.sources[name].static else _drop_untimed(pipeline.sources[name], raw)

    frames = build_frames(spark, pipeline.model_copy(update={"sources": static}), read_all)
    return {query: frames[pipeline.reads(query)] for query in pipeline.queries}


def _drop_untimed(entry: SourceEntry, raw: DataFrame) -> DataFrame:
    """Drop the rows that a stream would drop because their event time is missing. A table's rows need none.

    Decoding drops them if rows come as bytes.
    """
    if entry.watermark is None or entry.on_malformed is OnMalformed.FAIL:
        return raw
    time = find_column(entry.watermark.event_time, raw.columns)
    if entry.source.has_payload or time is None:
        return raw
    return raw.where(F.col(quote_name(time)).isNotNull())
