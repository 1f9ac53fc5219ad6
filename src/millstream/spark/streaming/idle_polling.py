"""Let the queries of a run ask their sources for news less often, the more queries there are."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

SETTING = "spark.sql.streaming.pollingDelay"
# Together the queries of a run ask twenty times a second. A request takes 1.6 ms of CPU; with Spark's 10 ms for each
# query, twenty queries without an interval in their trigger took half of a core while nothing arrived.
MILLISECONDS_PER_QUERY, MOST_MILLISECONDS = 50, 1_000


@contextmanager
def poll_less_often(spark: SparkSession, settings: Mapping[str, object], queries: int) -> Iterator[None]:
    """Set the delay for queries that start inside the `with`, unless the spec's own settings have it."""
    if SETTING in settings:
        yield
        return
    before: str | None = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, f"{min(MILLISECONDS_PER_QUERY * queries, MOST_MILLISECONDS)}ms")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(SETTING)
        else:
            spark.conf.set(SETTING, before)
