"""Let Spark refuse to bring the rows of a job to the driver."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_SETTING = "spark.driver.maxResultSize"


@contextmanager
def limited_results(spark: SparkSession, limit: str) -> Iterator[None]:
    """Limit the results of each job, which Spark asks for when the job starts."""
    conf: Any = spark.sparkContext._jsc.sc().conf()
    before = conf.get(_SETTING, "1g")
    conf.set(_SETTING, limit)
    yield
    conf.set(_SETTING, before)
