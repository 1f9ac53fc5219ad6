"""Spark's rate-micro-batch source: a fixed number of generated rows per batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import Field

from millstream.connectors.api.source import Source
from millstream.connectors.api.values.problem import Problem
from millstream.spec.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession


class RateMicroBatchSource(Source):
    """Generated rows, the same number in every batch, for testing the speed of a pipeline."""

    kind = "rate_micro_batch"
    main = "rows_per_batch"
    is_replayable = True
    is_generated = True
    columns = "timestamp TIMESTAMP, value BIGINT"

    rows_per_batch: int = Field(default=1000, ge=1)
    """Number of rows per batch."""
    num_partitions: int | None = Field(default=None, ge=1)
    """Number of Spark tasks that generate rows. Default: Spark's default parallelism."""
    start_timestamp: int = Field(default=0, ge=0)
    """`timestamp` of the first batch, in milliseconds since 1970."""
    advance_per_batch: Duration = Duration("1 second")
    """Difference between the timestamps of two batches, in whole milliseconds."""

    def read(self, spark: SparkSession, *, static: bool, schema: str | None) -> DataFrame:  # noqa: ARG002 - columns are fixed
        """Open a stream of `columns`: the batch's time, and the row's number from 0."""
        options = {
            "rowsPerBatch": str(self.rows_per_batch),
            "startTimestamp": str(self.start_timestamp),
            "advanceMillisPerBatch": str(self.advance_per_batch.micros // 1000),
        }
        if self.num_partitions is not None:
            options["numPartitions"] = str(self.num_partitions)
        return spark.readStream.format("rate-micro-batch").options(**options).load()

    def generate(self, many: int, until: datetime) -> list[Mapping[str, Any]]:  # noqa: ARG002 - its clock is its own
        """Return the first rows: a batch after the other, numbered from 0."""
        start = datetime.fromtimestamp(self.start_timestamp / 1000, UTC)
        step = timedelta(microseconds=self.advance_per_batch.micros)
        return [
            {"timestamp": start + step * (row // self.rows_per_batch), "value": row} for row in range(many)
        ]

    def problems(self) -> list[Problem]:
        """Check that the step is a whole number of milliseconds."""
        if self.advance_per_batch.micros % 1000:
            field = "advance_per_batch"
            return [Problem(field, f"{field} is not whole milliseconds", "round it to milliseconds")]
        return []

    def has_batch_limit(self) -> bool:
        """Return True: every batch has a fixed size."""
        return True

    def describe(self) -> str:
        """Describe as `rate_micro_batch 1000 a batch`."""
        return f"{self.kind} {self.rows_per_batch} a batch"
