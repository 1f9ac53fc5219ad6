"""Collect the rows of a view or source of the query under test with a separate streaming query."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from millstream.diagnostics.failure import InvalidInput
from millstream.spec.output_mode import OutputMode
from millstream.testing.harness.collecting_sink import CollectedRows, collect_rows
from millstream.testing.harness.manual_clock import ManualClockQuery
from millstream.testing.harness.memory_streams import MemoryStreams, reduce_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.testing.model import Case


class ViewOutput:
    """The output of one view or source, batch by batch.

    A query does not expose the rows of its views, because Spark merges all views into one plan. So the view runs as a
    separate query, with the same input, the same clock and separate state. It uses the output mode of the query under
    test if Spark allows it, else append, else update mode. It does not crash with the query under test, so that the
    view's rows are collected once.
    """

    def __init__(self, spark: SparkSession, name: str, case: Case, folder: Path, limit: float) -> None:
        self.spark, self.name, self.case, self.folder = spark, name, case, folder
        self.lines = MemoryStreams(spark)
        now = case.now or datetime(2026, 1, 1, tzinfo=UTC)
        self.manual_query = ManualClockQuery(
            spark, f"{case.query}:{name}", round(now.timestamp() * 1000), limit
        )
        self.pipeline = case.pipeline
        self.mode = case.pipeline.queries[case.query].output_mode
        self.collected = CollectedRows(self.mode)

    def restart(self, pipeline: Pipeline) -> None:
        """Continue with another pipeline from the next batch."""
        self.manual_query.stop()
        self.pipeline = pipeline

    def batch(self) -> None:
        """Run the same batches as the query under test, including the no-data batch after a watermark advance."""
        if self.manual_query.is_alive:
            self.manual_query.trigger()
        else:
            self._start()
        # If this query fails, so does the query under test, which reads the same rows and reports the error.
        fresh = self.manual_query.reports()
        self.manual_query.follow(fresh[-1] if fresh else None)

    def _start(self) -> None:
        now = datetime.fromtimestamp(self.manual_query.now / 1000, UTC)
        _, frames = self.lines.frames(reduce_pipeline(self.pipeline, self.name), self.case.static, now)
        frame = frames[self.name]
        refusal: AnalysisException | None = None
        for mode in dict.fromkeys([self.mode, OutputMode.APPEND, OutputMode.UPDATE]):
            self.collected.mode = mode
            try:
                self.manual_query.start(frame, mode, self._collect_batch, self.folder / "views" / self.name)
            except AnalysisException as error:
                refusal = error
            else:
                self.manual_query.settle()
                return
        raise InvalidInput(
            f"the rows of view '{self.name}' cannot be collected separately: {refusal}",
            "expect rows of another view, or of the query",
        )

    def _collect_batch(self, frame: DataFrame, batch_id: int) -> None:
        if batch_id not in self.collected.batches:
            self.collected.fresh.append(collect_rows(frame))
            self.collected.batches.add(batch_id)
