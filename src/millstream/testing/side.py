"""The rows of a view or source that a query under test reads: a streaming query of their own beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from millstream.diagnostics.failure import WrongUse
from millstream.spec.mode import OutputMode
from millstream.testing.collecting import Collected, rows
from millstream.testing.lines import Lines, part
from millstream.testing.strand import Strand

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from millstream.pipeline.model import Pipeline
    from millstream.testing.case import Case


class Side:
    """What one view or source gives, batch by batch.

    A view's rows are nowhere to be seen in the query that reads it: Spark makes one plan of all views. So the view
    is a query of its own, with the same rows, the same clock and state of its own. It is written in the mode of the
    query under test where Spark allows that of it, else in append, else in update mode. It does not die with the
    query under test: what a view gives is told once.
    """

    def __init__(self, spark: SparkSession, name: str, case: Case, folder: Path, limit: float) -> None:
        self.spark, self.name, self.case, self.folder = spark, name, case, folder
        self.lines = Lines(spark)
        now = case.now or datetime(2026, 1, 1, tzinfo=UTC)
        self.strand = Strand(spark, f"{case.query}:{name}", round(now.timestamp() * 1000), limit)
        self.pipeline = case.pipeline
        self.mode = case.pipeline.queries[case.query].output_mode
        self.collected = Collected(self.mode)

    def restart(self, pipeline: Pipeline) -> None:
        """Go on with another pipeline from the next batch on."""
        self.strand.stop()
        self.pipeline = pipeline

    def batch(self) -> None:
        """Play what the query under test has played: its batch, and the one that a moved watermark asks for."""
        if self.strand.alive:
            self.strand.trigger()
        else:
            self._start()
        # Should it die, the query under test reads the same rows and says so of itself.
        new = self.strand.reports()
        self.strand.follow(new[-1] if new else None)

    def _start(self) -> None:
        now = datetime.fromtimestamp(self.strand.now / 1000, UTC)
        _, frames = self.lines.frames(part(self.pipeline, self.name), self.case.static, now)
        frame = frames[self.name]
        refused: AnalysisException | None = None
        for mode in dict.fromkeys([self.mode, OutputMode.APPEND, OutputMode.UPDATE]):
            self.collected.mode = mode
            try:
                self.strand.start(frame, mode, self._keep, self.folder / "views" / self.name)
            except AnalysisException as wrong:
                refused = wrong
            else:
                self.strand.settle()
                return
        raise WrongUse(
            f"the rows of view '{self.name}' cannot be looked at by themselves: {refused}",
            "expect rows of another view, or of the query",
        )

    def _keep(self, frame: DataFrame, batch_id: int) -> None:
        if batch_id not in self.collected.held:
            self.collected.fresh.append(rows(frame))
            self.collected.held.add(batch_id)
