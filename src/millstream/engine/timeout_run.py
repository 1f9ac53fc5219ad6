"""Let a run end by itself although a query has time-outs that follow the machine's clock."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.pipeline.graph import PipelineGraph
from millstream.pipeline.stateful import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.spec.trigger import Trigger

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


def has_processing_time_timeout(pipeline: Pipeline, query: str) -> bool:
    """Return whether the spec declares timers or a time-out by processing time in a view of the query."""
    views = [pipeline.views[name] for name in PipelineGraph.of(pipeline).views(query)]
    return any(Clock.PROCESSING_TIME in (view.time_mode, view.timeout) for view in views)


@contextmanager
def ensure_query_ends(
    spark: SparkSession, pipeline: Pipeline, query: str, trigger: Trigger
) -> Iterator[None]:
    """Start a query inside this context so that it ends once it has read all available input.

    With processing-time timers Spark plans one more batch after each batch, in case a timer is due, so a query that
    should end when no input is left never ends. Without empty batches it does end, and a timer that is due fires in
    the next run. A query keeps the settings that it was started with.
    """
    if not (trigger.has_end and has_processing_time_timeout(pipeline, query)):
        yield
        return
    former = spark.conf.get(_EMPTY_BATCHES)
    spark.conf.set(_EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(_EMPTY_BATCHES, str(former))
