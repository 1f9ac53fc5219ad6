"""Deliver each batch of a query to its sinks, once to each, and store its dead letters."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.lock import require_lease
from millstream.connectors.api.writer import conflicting_batch_error, keep_metrics
from millstream.connectors.failpoints import hit_failpoint
from millstream.diagnostics.failure import Outage
from millstream.engine.delivery.dead_letters import count_rejected
from millstream.engine.delivery.frame_cache import persisted
from millstream.engine.delivery.repeated_runs import TaskReruns, reset_metrics
from millstream.spark import internals
from millstream.spark.cluster.stored_rows import is_too_large_for_driver
from millstream.spark.settings import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from millstream.checkpoint.remote.path import CheckpointPath
    from millstream.connectors.api.writer import Writer
    from millstream.engine.delivery.batch_metadata import BatchNotes
    from millstream.engine.delivery.dead_letters import DeadLetters
    from millstream.engine.delivery.spool_retry import SpoolRetry
    from millstream.engine.events.event_bus import EventBus
    from millstream.spark.streaming.code_generation import CodeGeneration


OTHER_ROWS = (
    "make the views return the same rows for the same records: 'millstream check' finds rand(), uuid(), now() and "
    "similar calls; it cannot see into Python functions, sums of floating-point numbers, first() and last()"
)

# Why a record became a dead letter, as the page and a metric's label name it.
MALFORMED, BROKEN = "malformed", "expectation"

COLLECTED = "collected"
"""The `way` of a sink that wrote a small batch from the driver's memory."""


@dataclass
class Delivery:
    """The foreachBatch function of one start of one query.

    A batch whose offsets are written but which is not committed may have reached some sinks and not others.
    Spark passes exactly that batch again after a start, with the same id. Each sink that has it is skipped, so
    that a replay delivers what is missing and repeats nothing.
    """

    query: str
    writers: dict[str, Writer]
    letters: DeadLetters | None
    events: EventBus
    notes: BatchNotes
    replayed: int | None
    """The batch that may have been delivered in part before this start, or None."""
    handle: Any = None
    """Spark's own StreamExecution, set once `start()` has returned."""
    failure: Exception | None = None
    """The Python exception that ended the last batch. Spark reports only its text."""
    has_delivered: bool = False
    """Whether a batch has reached every sink since the start."""
    probing: SpoolRetry | None = None
    """Delivers spooled batches in the background."""
    checkpoint: CheckpointPath | None = None
    """The folder of the query's checkpoint, of which another run may have the lease."""
    is_last: bool = False
    """Whether the query ends after the batch that is delivered now, or that is delivered next."""
    generation: CodeGeneration | None = None
    """Chooses whether Spark generates code for the next batch; None if the spec chose."""
    _query: Any = None
    _ready: threading.Event = field(default_factory=threading.Event)

    def begin(self, handle: Any) -> None:
        """Let batches run. `handle` is the started query, whose metrics a batch reads."""
        self._query, self.handle = handle, internals.stream_execution(handle)
        self._ready.set()

    def close(self) -> None:
        """Close every writer, and release a batch that waits for a start that failed."""
        self._ready.set()
        if self.probing is not None:
            self.probing.close()
        for writer in self.writers.values():
            writer.close()
        if self.letters is not None:
            self.letters.keeper.close()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Deliver one batch. Raises a sink's exception, for which Spark stops the query and commits nothing."""
        self._ready.wait()
        try:
            self._deliver(frame, batch_id)
            self.has_delivered = True
            if self.is_last:
                internals.terminate_after_batch(frame.sparkSession, self._query)
        except Exception as error:
            # Pass any error on to Spark. It is kept here because Spark returns only its text.
            self.failure = error
            raise

    def _deliver(self, frame: DataFrame, batch_id: int) -> None:
        # Another run may have taken over: the driver was suspended, or its lock file was deleted.
        if self.checkpoint is not None:
            require_lease(self.checkpoint)
        hit_failpoint("batch.begun")
        self.events.emit("batch_started", self.query, batch=batch_id, sinks=list(self.writers))
        self.notes.running(batch_id, self.handle)
        reruns = self._watch_reruns(frame)
        missing = {
            name: writer for name, writer in self.writers.items() if not self._is_delivered(writer, batch_id)
        }
        skipping_writers = [writer for name, writer in self.writers.items() if name not in missing]
        # A user's function may execute its frame often, or in part. Each record counts once for the dead letters.
        counts_first = self.letters is not None and not all(
            writer.always_executes for writer in missing.values()
        )
        is_read_again = sum(writer.passes for writer in missing.values()) > 1
        collected = self._collect_small(frame, missing.values()) if is_read_again else None
        cached = counts_first or (is_read_again and collected is None)
        if reruns is not None:
            run_id = str(self.handle.runId())
            self.notes.may_count_twice = partial(reruns.may_count_twice, run_id, is_cached=cached)
        if cached:
            frame = persisted(frame)
        # The second run of a cached batch adds to no metric.
        reset = keep_metrics if cached else partial(reset_metrics, frame, self.handle)
        try:
            if counts_first:
                _execute(frame)
            for name, writer in missing.items():
                writer.reset_metrics = reset
                began = time.monotonic()
                if collected is not None:
                    result = writer.write_rows(collected, batch_id)
                else:
                    # A function that ends with `unpersist()` must not drop this cache: to Spark it has another plan.
                    rows = frame.where("true") if cached and not writer.always_executes else frame
                    result = writer.write(rows, batch_id)
                if result.is_skipped:
                    skipping_writers.append(writer)
                if result.is_spooled:
                    continue
                self.events.emit(
                    "batch_written",
                    self.query,
                    batch=batch_id,
                    sink=name,
                    rows=result.rows,
                    skipped=result.is_skipped,
                    way=result.way if collected is None else COLLECTED,
                    seconds=round(time.monotonic() - began, 3),
                )
            is_unread = all(
                writer in skipping_writers or not writer.always_executes for writer in self.writers.values()
            )
            if is_unread and not self.notes.passed(batch_id):
                # State is committed by running the batch. Spark rejects a batch if not all partitions were read.
                _execute(frame)
        finally:
            if cached:
                frame.unpersist()
        for writer in skipping_writers:
            self._compare_replay(writer, batch_id)
        self._store_dead_letters(frame, batch_id)
        self._choose_execution(frame, batch_id)
        hit_failpoint("batch.delivered")

    def _collect_small(self, frame: DataFrame, writers: Iterable[Writer]) -> pa.Table | None:
        """Execute a batch that is expected to be small, and return its rows, if every sink accepts rows.

        Returns None otherwise, and also if the rows are too many for the driver.
        """
        is_small = self.generation is not None and self.generation.is_small
        if not is_small or not all(writer.accepts_rows for writer in writers):
            return None
        try:
            return frame.toArrow()
        except Exception as error:
            if not is_too_large_for_driver(error):
                raise
            reset_metrics(frame, self.handle)
            return None

    def _choose_execution(self, frame: DataFrame, batch_id: int) -> None:
        """Choose how the next batch is executed, by the records of this one."""
        if self.generation is None:
            return
        rows = self.notes.rows_in(batch_id, self.generation.sources)
        if rows is not None:
            self.generation.follow(frame.sparkSession, rows)

    def _compare_replay(self, writer: Writer, batch_id: int) -> None:
        """Compare a replayed batch with the one that the sink has.

        Raises `CheckpointMismatch` if that has other records.
        """
        entry, note = writer.entry(batch_id), self.notes(batch_id)
        if entry is None:
            return
        if entry.note.contradicts(note):
            raise conflicting_batch_error(writer.identity, batch_id)
        if None not in (entry.note.content, note.content) and entry.note.content != note.content:
            self.events.emit(
                "warning",
                self.query,
                sink=writer.identity.sink,
                batch=batch_id,
                what=f"batch {batch_id} was replayed with other rows than sink '{writer.identity.sink}' has; the "
                "sink keeps its rows, so the sinks of this query may differ",
                fix=OTHER_ROWS,
            )

    def _is_delivered(self, writer: Writer, batch_id: int) -> bool:
        """Return whether the sink already has the batch. Only the first batch after a start can have been there."""
        return batch_id == self.replayed and writer.has_batch(batch_id)

    def _watch_reruns(self, frame: DataFrame) -> TaskReruns | None:
        """Watch the tasks of a batch with dead letters or a checksum. In local mode no executor can be lost."""
        is_counted = self.letters is not None or self.notes.content
        if not is_counted or is_local(str(frame.sparkSession.sparkContext.master)):
            return None
        return TaskReruns.watch(frame.sparkSession)

    def _store_dead_letters(self, frame: DataFrame, batch_id: int) -> None:
        """Store the dead letters of the batch, if it has any.

        Raises `Outage` if they may have been counted twice. The sinks that have the batch skip it when it runs again.
        """
        if self.letters is None:
            return
        rejected = count_rejected(self.letters, self.handle.lastExecution().observedMetrics())
        if not rejected:
            return
        if self.notes.may_count_twice is not None and self.notes.may_count_twice():
            raise Outage(
                f"an executor was lost during batch {batch_id}, and Spark ran some of its tasks again, so that dead "
                "letters may be counted twice",
                "the batch runs again",
            )
        self.letters.keep(frame.sparkSession, batch_id, rejected)
        hit_failpoint("letters.kept")
        counts = {
            name: rejected_counts.malformed + rejected_counts.broken
            for name, rejected_counts in rejected.items()
        }
        self.events.emit(
            "dead_letter",
            self.query,
            batch=batch_id,
            sources=counts,
            records=sum(counts.values()),
            reasons=[
                {"source": name, "reason": reason, "records": records}
                for name, rejected_counts in rejected.items()
                for reason, records in (
                    (MALFORMED, rejected_counts.malformed),
                    (BROKEN, rejected_counts.broken),
                )
                if records
            ],
        )


def _execute(frame: DataFrame) -> None:
    """Execute a batch without writing it."""
    frame.write.format("noop").mode("overwrite").save()
