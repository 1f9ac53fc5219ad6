"""Deliver each batch of a query to its sinks, each once, and set its malformed records aside."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.connectors.failpoints import reach
from millstream.connectors.sink import contested
from millstream.runtime.caching import kept
from millstream.runtime.letters import aside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.connectors.sink import Writer
    from millstream.runtime.events import Events
    from millstream.runtime.letters import Letters
    from millstream.runtime.notes import Notes
    from millstream.runtime.probing import Probing


OTHER_ROWS = (
    "see that the views give the same rows of the same records: 'millstream check' names rand(), uuid(), now() and "
    "other calls; it cannot see into Python functions, sums of floating-point numbers, first() and last()"
)

# Why a record was set aside, in the words of the page and of a metric's label.
MALFORMED, BROKEN = "malformed", "expectation"


@dataclass
class Delivery:
    """The foreachBatch function of one start of one query.

    A batch whose offsets are written and whose commit is not may have reached some sinks and not others.
    Spark hands exactly that batch over again after a start, with the same id; each sink that holds it is
    passed over, so that a replay finishes what is missing and repeats nothing.
    """

    query: str
    writers: dict[str, Writer]
    letters: Letters | None
    events: Events
    notes: Notes
    replayed: int | None
    """The batch that may have been delivered in part before this start, or None."""
    handle: Any = None
    """Spark's own StreamExecution, set once `start()` has returned."""
    failure: Exception | None = None
    """What ended the last batch, as Python raised it; Spark tells only its text."""
    delivered: int = 0
    """Batches that reached every sink since the start."""
    probing: Probing | None = None
    """Delivers what was set aside, beside the batches."""
    _ready: threading.Event = field(default_factory=threading.Event)

    def begin(self, handle: Any) -> None:
        """Let batches through: `handle` is the started query, whose figures a batch reads."""
        self.handle = handle._jsq.streamingQuery()
        self._ready.set()

    def close(self) -> None:
        """Let go of every writer, and of a batch that waits for a start that failed."""
        self._ready.set()
        if self.probing is not None:
            self.probing.close()
        for writer in self.writers.values():
            writer.close()
        if self.letters is not None:
            self.letters.keeper.close()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Deliver one batch. Raises what a sink raises; Spark then stops the query and commits nothing."""
        self._ready.wait()
        try:
            self._deliver(frame, batch_id)
            self.delivered += 1
        except Exception as error:
            # Whatever it is goes on to Spark; it is kept because Spark hands back its text alone.
            self.failure = error
            raise

    def _deliver(self, frame: DataFrame, batch_id: int) -> None:
        reach("batch.begun")
        self.notes.running(batch_id, self.handle)
        missing = {name: writer for name, writer in self.writers.items() if not self._held(writer, batch_id)}
        passed_over = [writer for name, writer in self.writers.items() if name not in missing]
        cached = sum(writer.passes for writer in missing.values()) > 1
        if cached:
            frame = kept(frame)
        try:
            for name, writer in missing.items():
                written = writer.write(frame, batch_id)
                if written.skipped:
                    passed_over.append(writer)
                if written.later:
                    continue
                self.events.tell(
                    "batch_written",
                    self.query,
                    batch=batch_id,
                    sink=name,
                    rows=written.rows,
                    skipped=written.skipped,
                )
            unread = all(writer in passed_over or not writer.runs for writer in self.writers.values())
            if unread and not self.notes.passed(batch_id):
                # State is committed by running the batch; Spark refuses one whose partitions were not all read.
                frame.write.format("noop").mode("overwrite").save()
        finally:
            if cached:
                frame.unpersist()
        for writer in passed_over:
            self._compare(writer, batch_id)
        self._set_aside(frame, batch_id)
        reach("batch.delivered")

    def _compare(self, writer: Writer, batch_id: int) -> None:
        """Is what a sink holds of a batch what came again? Raises `Unfit` when it is of other records."""
        entry, note = writer.entry(batch_id), self.notes(batch_id)
        if entry is None:
            return
        if entry.note.contradicts(note):
            raise contested(writer.identity, batch_id)
        if None not in (entry.note.content, note.content) and entry.note.content != note.content:
            self.events.tell(
                "warning",
                self.query,
                sink=writer.identity.sink,
                batch=batch_id,
                what=f"batch {batch_id} came again with other rows than sink '{writer.identity.sink}' holds, which "
                "keeps what it has: sinks of this query may differ in it",
                fix=OTHER_ROWS,
            )

    def _held(self, writer: Writer, batch_id: int) -> bool:
        """Has this sink the batch already? Only the first batch after a start can have been there before."""
        return batch_id == self.replayed and writer.holds(batch_id)

    def _set_aside(self, frame: DataFrame, batch_id: int) -> None:
        """Keep the records that the batch set aside, if it met any."""
        if self.letters is None:
            return
        found = aside(self.letters, self.handle.lastExecution().observedMetrics())
        if not found:
            return
        self.letters.keep(frame.sparkSession, batch_id, found)
        reach("letters.kept")
        counts = {name: one.malformed + one.broken for name, one in found.items()}
        self.events.tell(
            "dead_letter",
            self.query,
            batch=batch_id,
            sources=counts,
            records=sum(counts.values()),
            reasons=[
                {"source": name, "reason": reason, "records": records}
                for name, one in found.items()
                for reason, records in ((MALFORMED, one.malformed), (BROKEN, one.broken))
                if records
            ],
        )
