"""Two streams with a watermark, one without, and a table, as views and frames to plan over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.checking.query_plan import operators
from millstream.frames.build_views import SOURCE_OPTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from millstream.analysis.query.plan_model import Operator

    Plan = Callable[[str | DataFrame], Operator]

COLUMNS = "id string, ts timestamp, v double, n int"
STREAMS = {"clicks": "5 minutes", "orders": "1 minute", "plain": None}


@pytest.fixture(scope="session")
def frames(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """`clicks` and `orders` with a watermark, `plain` without one, the table `users`."""
    empty = str(tmp_path_factory.mktemp("empty"))
    result = {}
    for name, delay in STREAMS.items():
        frame = spark.readStream.option(SOURCE_OPTION, name).schema(COLUMNS).json(empty)
        result[name] = frame.withWatermark("ts", delay) if delay else frame
    result["users"] = spark.read.option(SOURCE_OPTION, "users").schema("id string, city string").json(empty)
    return result


@pytest.fixture
def plan(spark: SparkSession, frames: dict[str, DataFrame]) -> Plan:
    """The operators of a query, given as SQL over the frames' names or as a frame."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)

    def read(query: str | DataFrame) -> Operator:
        return operators(spark.sql(query) if isinstance(query, str) else query)

    return read
