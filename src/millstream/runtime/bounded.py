"""A run that ends by itself, over a query whose time-outs go by the machine's clock."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.pipeline.graph import Graph
from millstream.pipeline.stateful import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.spec.trigger import Trigger

_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"


def by_the_clock(pipeline: Pipeline, query: str) -> bool:
    """Has a view of the query timers or a time-out by processing time, as the spec declares them?"""
    views = [pipeline.views[name] for name in Graph.of(pipeline).views(query)]
    return any(Clock.PROCESSING_TIME in (view.time_mode, view.timeout) for view in views)


@contextmanager
def ending(spark: SparkSession, pipeline: Pipeline, query: str, trigger: Trigger) -> Iterator[None]:
    """Within this a query is started so that it ends once it has read what is there.

    With such timers Spark asks for one more batch after each, in case one has run out, and a query that is to end
    when nothing is left never ends. It takes no batches without rows then; a timer that is due fires with the next
    run. A query keeps the settings that it was started with.
    """
    if not (trigger.ends and by_the_clock(pipeline, query)):
        yield
        return
    before = spark.conf.get(_EMPTY_BATCHES)
    spark.conf.set(_EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(_EMPTY_BATCHES, str(before))
