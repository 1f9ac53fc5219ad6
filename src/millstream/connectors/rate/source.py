"""Spark's rate source: a fixed number of rows per second, generated from the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import Field

from millstream.connectors.api.source import Source
from millstream.connectors.api.values.problem import Problem
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession


class RateSource(Source):
    """Rows generated from the clock, for trying out a pipeline without a broker."""

    kind = "rate"
    main = "rows_per_second"
    is_replayable = False
    flows = frozenset({"continuous"})
    is_generated = True
    columns = "timestamp TIMESTAMP, value BIGINT"

    rows_per_second: int = Field(default=1, ge=1)
    """Number of rows per second."""
    ramp_up_time: Duration | None = None
    """Time until the rate reaches `rows_per_second`, in whole seconds. Default: at once."""
    num_partitions: int | None = Field(default=None, ge=1)
    """Number of Spark tasks that generate rows. Default: Spark's default parallelism."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - columns are fixed
        """Open a stream of `columns`: the time when a row was due, and its number from 0."""
        options = {"rowsPerSecond": str(self.rows_per_second)}
        if self.ramp_up_time is not None:
            options["rampUpTime"] = f"{int(self.ramp_up_time.seconds)}s"
        if self.num_partitions is not None:
            options["numPartitions"] = str(self.num_partitions)
        return spark.readStream.format("rate").options(**options).load()

    def generate(self, many: int, until: datetime) -> list[Mapping[str, Any]]:
        """Return the rows that are due up to that time, numbered from 0."""
        step = timedelta(seconds=1) / self.rows_per_second
        return [{"timestamp": until - step * (many - 1 - row), "value": row} for row in range(many)]

    def problems(self) -> list[Problem]:
        """Check that the ramp-up time is a whole number of seconds."""
        if self.ramp_up_time is not None and self.ramp_up_time.micros % 1_000_000:
            return [Problem("ramp_up_time", "ramp_up_time is not whole seconds", "round it to seconds")]
        return []

    def describe(self) -> str:
        """Describe as `rate 100/s`."""
        return f"rate {self.rows_per_second}/s"
