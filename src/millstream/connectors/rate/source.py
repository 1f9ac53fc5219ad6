"""Spark's rate source: so many rows a second, made from the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.source import Problem, Source
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RateSource(Source):
    """Rows made from the clock, to try a pipeline without a broker."""

    kind = "rate"
    main = "rows_per_second"
    replayable = False
    flows = frozenset({"continuous"})
    made_up = True
    columns = "timestamp TIMESTAMP, value BIGINT"

    rows_per_second: int = Field(default=1, ge=1)
    """How many rows are made in a second."""
    ramp_up_time: Duration | None = None
    """How long the rate rises before it reaches `rows_per_second`; at once unless given. Whole seconds."""
    num_partitions: int | None = Field(default=None, ge=1)
    """How many Spark tasks make them; Spark's default parallelism unless given."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - columns are fixed
        """A stream of `columns`: when a row was due and its number, from 0."""
        options = {"rowsPerSecond": str(self.rows_per_second)}
        if self.ramp_up_time is not None:
            options["rampUpTime"] = f"{int(self.ramp_up_time.seconds)}s"
        if self.num_partitions is not None:
            options["numPartitions"] = str(self.num_partitions)
        return spark.readStream.format("rate").options(**options).load()

    def problems(self) -> list[Problem]:
        """A ramp that is no whole number of seconds."""
        if self.ramp_up_time is not None and self.ramp_up_time.micros % 1_000_000:
            return [Problem("ramp_up_time", "ramp_up_time is not whole seconds", "round it to seconds")]
        return []

    def describe(self) -> str:
        """`rate 100/s`."""
        return f"rate {self.rows_per_second}/s"
