"""Start the query under test as a run does, but with a manual clock and collecting or real sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.api.writer import SinkIdentity
from millstream.engine.delivery.sink_writers import create_writer
from millstream.engine.events.progress_listener import ROWS_OUT
from millstream.engine.sink_keys import plain_sink_keys
from millstream.engine.streaming_query import RunningQuery
from millstream.pipeline.model import OnError
from millstream.testing.harness.collecting_sink import (
    AFTER,
    BEFORE,
    CollectedRows,
    Collector,
    CrashingWriter,
    SimulatedCrash,
    collect_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.checkpoint.folder import Checkpoint
    from millstream.connectors.api.writer import Writer
    from millstream.engine.recovery.source_offsets import Origin
    from millstream.testing.harness.manual_clock import ManualClockQuery
    from millstream.testing.model import Row

OUTPUT = ""
"""The name of the query's own output among the collected rows."""


@dataclass
class PlannedCrash:
    """The point of the next crash. No crash is planned while `at` is None."""

    at: str | None = None
    has_happened: bool = False

    def is_due(self, at: str) -> bool:
        """Return whether to crash at this point. True only once."""
        if self.at != at:
            return False
        self.at, self.has_happened = None, True
        return True


@dataclass
class TestedQuery(RunningQuery):
    """One start of a query in a test.

    It differs from a real run in four points: the clock, the sinks that only collect, the crashes that a test asks
    for, and the checkpoint metadata, which is not written.
    """

    __test__ = False

    manual_query: ManualClockQuery | None = None
    collected: dict[str, CollectedRows] = field(default_factory=dict)
    """Collected rows of `OUTPUT`, and of each sink that only collects, by its key."""
    planned_crash: PlannedCrash = field(default_factory=PlannedCrash)
    _batch: dict[int, tuple[Row, ...]] = field(default_factory=dict)

    def _start(self, checkpoint: Checkpoint) -> StreamingQuery:
        assert self.manual_query is not None
        mode = self.pipeline.queries[self.name].output_mode
        counted = self.frame.observe(ROWS_OUT, F.count(F.lit(1)).alias("rows"))
        return self.manual_query.start(counted, mode, self._deliver, checkpoint.folder)

    def _record(self, checkpoint: Checkpoint, query_id: str, read: list[Origin]) -> None:
        """Write no checkpoint metadata, because no test plans a restart and reading all operators costs time."""

    def _deliver(self, frame: DataFrame, batch_id: int) -> None:
        self._batch.clear()
        if self.planned_crash.is_due(BEFORE):
            raise SimulatedCrash(f"the run crashed before any sink wrote batch {batch_id}")
        assert self.delivery is not None
        self.delivery(frame, batch_id)
        if self.planned_crash.is_due(AFTER):
            raise SimulatedCrash(f"the run crashed after all sinks wrote batch {batch_id}")

    def _writers(self, query_id: str) -> dict[str, Writer]:
        query = self.pipeline.queries[self.name]
        writers: dict[str, Writer] = {OUTPUT: self._collector(query_id, OUTPUT)}
        pairs = zip(plain_sink_keys(self.pipeline, self.name), query.to, strict=True)
        # In the order of a run: sinks that may spool a batch come last.
        for key, entry in sorted(pairs, key=lambda pair: pair[1].on_error is OnError.DEAD_LETTER):
            inner_writer = (
                self._collector(query_id, key)
                if key in self.collected
                else create_writer(self.pipeline, self.name, query_id, key, entry, self.events)
            )
            writers[key] = CrashingWriter(inner_writer, lambda key=key: self.planned_crash.is_due(key))  # type: ignore[misc]
        return writers

    def _collector(self, query_id: str, key: str) -> Collector:
        mode = self.pipeline.queries[self.name].output_mode
        identity = SinkIdentity(self.pipeline.name, self.name, query_id, key or "output", mode)
        collector = Collector(identity, self.collected[key], self._collect)
        # All collectors share one execution of the batch.
        collector.passes = 1 if key == OUTPUT else 0
        return collector

    def _collect(self, frame: DataFrame, batch_id: int) -> tuple[Row, ...]:
        if batch_id not in self._batch:
            self._batch[batch_id] = collect_rows(frame)
        return self._batch[batch_id]
