"""Collect the rows of a view or source of the query under test with a separate streaming query."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException

from millstream.diagnostics.failure import InvalidInput, MillstreamError
from millstream.engine.failure_classifier import classify
from millstream.spec.output_mode import OutputMode
from millstream.testing.harness.collecting_sink import CollectedRows, collect_rows
from millstream.testing.harness.manual_clock import ManualClockQuery
from millstream.testing.harness.memory_streams import MemoryStreams, reduce_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from millstream.pipeline.model import Pipeline
    from millstream.testing.model import Case, Row


def is_view_or_source(name: str, pipeline: Pipeline) -> bool:
    """Return whether a pipeline has a view or source of that name."""
    return name in pipeline.views or name in pipeline.sources


class ViewOutput:
    """The output of one view or source, batch by batch.

    A query does not expose the rows of its views, because Spark merges all views into one plan. So the view runs as a
    separate query, with the same input, the same clock and separate state. It uses the output mode of the query under
    test if Spark allows it, else append, else update mode. It does not crash with the query under test, so that the
    view's rows are collected once.
    """

    def __init__(
        self, name: str, case: Case, pipeline: Pipeline, folder: Path, query: ManualClockQuery
    ) -> None:
        self.name, self.case, self.pipeline, self.folder = name, case, pipeline, folder
        self.manual_query = query
        self.lines = MemoryStreams(query.spark)
        self.mode = pipeline.queries[case.query].output_mode
        self.collected = CollectedRows(self.mode)

    def restart(self, pipeline: Pipeline) -> None:
        """Continue with another pipeline from the next batch."""
        self.manual_query.stop()
        self.pipeline = pipeline

    def batch(self) -> MillstreamError | None:
        """Run the same batches as the query under test, including the no-data batch after a watermark advance.

        Return the error that ended a batch.
        """
        try:
            if self.manual_query.is_alive:
                self.manual_query.trigger()
            elif is_view_or_source(self.name, self.pipeline):
                self._start()
            else:
                return None
            fresh = self.manual_query.reports()
            self.manual_query.follow(fresh[-1] if fresh else None)
        except MillstreamError as error:
            return error
        except PySparkException as error:
            return self._explain(error)
        return None if self.manual_query.error is None else self._explain(self.manual_query.error)

    def _explain(self, error: Exception) -> MillstreamError:
        failure = classify(None, error)
        return MillstreamError(
            f"the rows of '{self.name}' cannot be collected: {failure.message}", failure.fix
        )

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


class ViewOutputs:
    """The outputs of all views and sources among `names`, except the one that the query under test writes.

    A name that only a later version of the pipeline has gets its output when that version starts.
    """

    def __init__(self, names: Sequence[str], case: Case, folder: Path, query: ManualClockQuery) -> None:
        self._names, self._case, self._folder, self._query = names, case, folder, query
        self._outputs: dict[str, ViewOutput] = {}
        self._open(case.pipeline)

    def _open(self, pipeline: Pipeline) -> None:
        query = self._query
        for name in self._names:
            is_separate = is_view_or_source(name, pipeline) and name != pipeline.reads(self._case.query)
            if is_separate and name not in self._outputs:
                own_query = ManualClockQuery(query.spark, f"{query.name}:{name}", query.now, query.limit)
                self._outputs[name] = ViewOutput(name, self._case, pipeline, self._folder, own_query)

    def __contains__(self, name: str) -> bool:
        return name in self._outputs

    def take(self, name: str) -> tuple[Row, ...]:
        """Return the rows of a view or source since the last call."""
        return self._outputs[name].collected.take()

    def add(self, encoded: Mapping[str, list[str]]) -> None:
        """Add a portion to each named source."""
        for output in self._outputs.values():
            output.lines.add(encoded)

    def advance(self, millis: int) -> None:
        """Advance the clocks."""
        for output in self._outputs.values():
            output.manual_query.now += millis

    def batch(self, *, has_failed: bool) -> None:
        """Run the batches of all outputs. Raises the error of one, unless the query under test has failed too."""
        errors = [error for output in self._outputs.values() if (error := output.batch()) is not None]
        if errors and not has_failed:
            raise errors[0]

    def restart(self, pipeline: Pipeline) -> None:
        """Continue with another pipeline from the next batch."""
        for output in self._outputs.values():
            output.restart(pipeline)
        self._open(pipeline)

    def stop(self) -> None:
        """Stop all queries."""
        for output in self._outputs.values():
            output.manual_query.stop()
