"""The query under test: started as a run starts it, under a test's clock, with sinks that collect or real ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from millstream.connectors.sink import SinkIdentity
from millstream.pipeline.model import OnError
from millstream.runtime.deferred import writer
from millstream.runtime.progress import ROWS_OUT
from millstream.runtime.query import RunningQuery
from millstream.runtime.recording import sink_keys
from millstream.testing.collecting import AFTER, BEFORE, Collected, Collector, Died, Mortal, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.checkpoint.folder import Checkpoint
    from millstream.connectors.sink import Writer
    from millstream.runtime.origins import Origin
    from millstream.testing.case import Row
    from millstream.testing.strand import Strand

OUTPUT = ""
"""The name of the query's own output among what is collected."""


@dataclass
class Doom:
    """Where the run dies next; nowhere while `at` is None."""

    at: str | None = None
    done: bool = False

    def here(self, at: str) -> bool:
        """Does it die here? Once."""
        if self.at != at:
            return False
        self.at, self.done = None, True
        return True


@dataclass
class TestedQuery(RunningQuery):
    """A start of a query in a test.

    Everything is a run's own but four things: the clock, the sinks where they are only to collect, a death where a
    test asks for one, and the record of what made the checkpoint, which it does not keep.
    """

    __test__ = False

    strand: Strand | None = None
    collected: dict[str, Collected] = field(default_factory=dict)
    """What collects: `OUTPUT`, and each sink that does not write, by its key."""
    doom: Doom = field(default_factory=Doom)
    _batch: dict[int, tuple[Row, ...]] = field(default_factory=dict)

    def _start(self, checkpoint: Checkpoint) -> StreamingQuery:
        assert self.strand is not None
        mode = self.pipeline.queries[self.name].output_mode
        counted = self.frame.observe(ROWS_OUT, F.count(F.lit(1)).alias("rows"))
        return self.strand.start(counted, mode, self._deliver, checkpoint.folder)

    def _record(self, checkpoint: Checkpoint, query_id: str, read: list[Origin]) -> None:
        """Keep nothing: nobody plans a restart of a test, and asking Spark for all operators costs time."""

    def _deliver(self, frame: DataFrame, batch_id: int) -> None:
        self._batch.clear()
        if self.doom.here(BEFORE):
            raise Died(f"the run died before any sink had batch {batch_id}")
        assert self.delivery is not None
        self.delivery(frame, batch_id)
        if self.doom.here(AFTER):
            raise Died(f"the run died after all sinks had batch {batch_id}")

    def _writers(self, query_id: str) -> dict[str, Writer]:
        query = self.pipeline.queries[self.name]
        found: dict[str, Writer] = {OUTPUT: self._collector(query_id, OUTPUT)}
        pairs = zip(sink_keys(self.pipeline, self.name), query.to, strict=True)
        # In a run's order: sinks that may set a batch aside come last.
        for key, entry in sorted(pairs, key=lambda one: one[1].on_error is OnError.DEAD_LETTER):
            chosen = (
                self._collector(query_id, key)
                if key in self.collected
                else writer(self.pipeline, self.name, query_id, key, entry, self.events)
            )
            found[key] = Mortal(chosen, lambda key=key: self.doom.here(key))  # type: ignore[misc]
        return found

    def _collector(self, query_id: str, key: str) -> Collector:
        mode = self.pipeline.queries[self.name].output_mode
        identity = SinkIdentity(self.pipeline.name, self.name, query_id, key or "output", mode)
        collector = Collector(identity, self.collected[key], self._collect)
        # All that collect share one run of the batch.
        collector.passes = 1 if key == OUTPUT else 0
        return collector

    def _collect(self, frame: DataFrame, batch_id: int) -> tuple[Row, ...]:
        if batch_id not in self._batch:
            self._batch[batch_id] = rows(frame)
        return self._batch[batch_id]
