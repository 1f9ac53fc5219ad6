"""The batch answer: each query's rows, computed once over input that is all there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.pipeline.model import OnMalformed
from millstream.runtime.assemble import assemble, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline, SourceEntry
    from millstream.runtime.assemble import Reader


def answers(spark: SparkSession, pipeline: Pipeline, reader: Reader | None = None) -> dict[str, DataFrame]:
    """Each query's rows as a batch gives them, by the query's name.

    `reader` gives the raw rows of a source, undecoded, as a static DataFrame with the columns of its kind's
    `read`; all that the source holds unless given. It is asked with the entry as a table (`static`).

    A batch knows no watermark: no row is late, and of rows with the same keys of
    `drop_duplicates_within_watermark` one is kept in all there is. Spark's own errors pass through.
    """
    static = {name: entry.model_copy(update={"static": True}) for name, entry in pipeline.sources.items()}

    def whole(name: str, entry: SourceEntry) -> DataFrame:
        raw = reader(name, entry) if reader else read(spark, name, entry)
        return raw if pipeline.sources[name].static else _timed(pipeline.sources[name], raw)

    frames = assemble(spark, pipeline.model_copy(update={"sources": static}), whole)
    return {query: frames[pipeline.reads(query)] for query in pipeline.queries}


def _timed(entry: SourceEntry, raw: DataFrame) -> DataFrame:
    """Without the rows that a stream leaves out because their event time is missing; a table's rows need none.

    Where rows come as bytes, decoding sees to it.
    """
    if entry.watermark is None or entry.on_malformed is OnMalformed.FAIL:
        return raw
    time = entry.watermark.event_time
    if entry.source.payload or time not in raw.columns:
        return raw
    return raw.where(F.col(f"`{time.replace('`', '``')}`").isNotNull())
