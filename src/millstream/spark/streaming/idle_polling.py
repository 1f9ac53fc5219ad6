"""Let the queries of a run ask their sources for news less often, the more queries there are."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

SETTING = "spark.sql.streaming.pollingDelay"
# With Spark's 10 ms, twenty queries without an interval in their trigger took half of a core while nothing arrived.
# A batch takes longer than these, and a trigger that must be quicker is `continuous` or `real_time`.
LEAST_MILLISECONDS, MILLISECONDS_PER_QUERY = 50, 10


@contextmanager
def poll_less_often(spark: SparkSession, settings: Mapping[str, object], queries: int) -> Iterator[None]:
    """Set the delay for queries that start inside the `with`, unless the spec's own settings have it."""
    if SETTING in settings:
        yield
        return
    before: str | None = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, f"{max(LEAST_MILLISECONDS, MILLISECONDS_PER_QUERY * queries)}ms")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(SETTING)
        else:
            spark.conf.set(SETTING, before)
