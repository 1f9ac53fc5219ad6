"""Spark's source of equal batches: so many rows in each, made from nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from millstream.connectors.source import Problem, Source
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RateMicroBatchSource(Source):
    """The same number of rows in every batch, made from nothing: what a test of a pipeline's speed reads."""

    kind = "rate_micro_batch"
    main = "rows_per_batch"
    replayable = True
    made_up = True
    columns = "timestamp TIMESTAMP, value BIGINT"

    rows_per_batch: int = Field(default=1000, ge=1)
    """How many rows a batch has."""
    num_partitions: int | None = Field(default=None, ge=1)
    """How many Spark tasks make them; Spark's default parallelism unless given."""
    start_timestamp: int = Field(default=0, ge=0)
    """The `timestamp` of the first batch, in milliseconds since 1970."""
    advance_per_batch: Duration = Duration("1 second")
    """How much later the rows of the next batch are. Whole milliseconds."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - columns are fixed
        """A stream of `columns`: the batch's time and the row's number, from 0."""
        options = {
            "rowsPerBatch": str(self.rows_per_batch),
            "startTimestamp": str(self.start_timestamp),
            "advanceMillisPerBatch": str(self.advance_per_batch.micros // 1000),
        }
        if self.num_partitions is not None:
            options["numPartitions"] = str(self.num_partitions)
        return spark.readStream.format("rate-micro-batch").options(**options).load()

    def problems(self) -> list[Problem]:
        """A step that is no whole number of milliseconds."""
        if self.advance_per_batch.micros % 1000:
            field = "advance_per_batch"
            return [Problem(field, f"{field} is not whole milliseconds", "round it to milliseconds")]
        return []

    def limited(self) -> bool:
        """Always: that is what it is for."""
        return True

    def describe(self) -> str:
        """`rate_micro_batch 1000 a batch`."""
        return f"{self.kind} {self.rows_per_batch} a batch"
