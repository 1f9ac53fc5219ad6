"""Write to a sink that may be down: batches it refuses are spooled and delivered later, in order."""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from millstream.checkpoint.lock import require_lease, require_owner
from millstream.connectors.api.writer import Writer, WriteResult
from millstream.connectors.failpoints import hit_failpoint
from millstream.diagnostics.failure import CheckpointMismatch, MillstreamError
from millstream.engine.events.event_bus import format_time
from millstream.engine.failure_classifier import FailureKind, classify
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.api.batch_ledger import LedgerEntry
    from millstream.connectors.api.writer import SinkIdentity
    from millstream.engine.delivery.batch_spool import BatchSpool, SpooledBatch
    from millstream.engine.events.event_bus import EventBus

# Wait this many seconds for an outage to end before its first batch is spooled, which covers a database restart.
# The wait happens once: while any batch is spooled, a failed attempt spools its batch at once.
PATIENCE = 10.0
# Waits between probes of a sink that is down, in seconds: the first, which doubles each time, and the longest.
FIRST_PROBE, LAST_PROBE = 1.0, 60.0
# Once a sink is back, spooled batches are delivered before the current batch for this many seconds, because the other
# sinks' next batch waits for it. It is also the longest wait for a background delivery. At least LEAST batches are
# delivered, so that the spool shrinks with each batch.
DRAIN = 5.0
LEAST = 2
# The batch was stopped from outside, which says nothing about the sink: Spark's texts for a cancelled job, and Java's
# exceptions where a stack trace names them. Other text may quote a row.
_STOPPED = re.compile(
    r"\bJob \d+ cancelled\b|\bStage cancelled: |\bSparkContext was shut down"
    r"|^(?:Caused by: |: |\[Errno \d+\] )?(?:[\w.$]+: )*(?:java\.(?:lang|io)\.)?Interrupted(?:IO)?Exception\b",
    re.MULTILINE,
)


class SpoolingWriter(Writer):
    """Writes through another writer, or spools the batch.

    A batch is delivered only if no older batch of the sink is spooled, so that rows of a key arrive in order. Spooled
    batches are delivered with their own batch ids, so a sink with a ledger skips a batch that it already has.

    Two threads use this writer. The batch thread never contacts a sink that is down: while any batch is spooled and
    the writer is not open, it spools and continues. The retry thread (`engine/delivery/spool_retry.py`) probes the
    sink and delivers. The lock guards the inner writer. Spooling needs no lock, because the delivering thread
    rechecks the spool before it releases the lock.
    """

    def __init__(
        self, identity: SinkIdentity, make: Callable[[], Writer], shelf: BatchSpool, events: EventBus | None
    ) -> None:
        super().__init__(identity)
        self._make = make
        self._spool = shelf
        self._events = events
        self._inner = make()
        self._ready: tuple[SparkSession, StructType] | None = None
        self._session: SparkSession | None = None
        self._columns: list[str] | None = None
        self._failures = 0
        self._probe_at = 0.0
        self._newest: int | None = None
        """The last batch with rows that this run has written and the sink's ledger has."""
        self._verify: Callable[[Sequence[LedgerEntry]], None] | None = None
        self.has_checksums, self.has_ledger = self._inner.has_checksums, self._inner.has_ledger
        self.skips_empty, self.always_executes = self._inner.skips_empty, self._inner.always_executes
        self._lock = threading.Lock()
        self._batch_waits = False
        self.fatal_error: Exception | None = None
        """What the next batch raises, to end the query."""
        # To spool a batch is to run it once more.
        self.passes = self._inner.passes + 1

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Open the writer. A sink that is down, or refuses, is opened later. Raises if the writer is fenced."""
        self._ready = (spark, schema)
        try:
            self._open_inner(schema)
        except Exception as error:  # noqa: BLE001 - raised again if it ends the query
            self._record_failure(error)

    def verify_ledger(self, spark: SparkSession, judge: Callable[[Sequence[LedgerEntry]], None]) -> None:
        """Verify the ledger at once, or for a sink that is down when it is opened, before its first batch."""
        self._verify = judge
        try:
            self._verify_ledger(spark)
        except Exception as error:  # noqa: BLE001 - as above
            self._record_failure(error)

    def newest(self, spark: SparkSession) -> LedgerEntry | None:
        """Return the newest ledger entry, as the sink reports it."""
        return self._inner.newest(spark)

    def entry(self, batch_id: int) -> LedgerEntry | None:
        """Return the sink's ledger entry of a batch, or None if there is none or the sink is down."""
        return (
            None if self._columns is None or self._spool.has_batch(batch_id) else self._inner.entry(batch_id)
        )

    def has_batch(self, batch_id: int) -> bool:
        """Return whether the batch is delivered or spooled. False if the sink cannot be asked."""
        if self._spool.has_batch(batch_id):
            return True
        with self._lock:
            try:
                return self._open_inner(None).has_batch(batch_id)
            except Exception as error:  # noqa: BLE001 - as above
                self._record_failure(error)
                return False

    def write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Deliver one batch after all spooled ones, or spool it. Raises an error that ends the query."""
        if self.fatal_error is not None:
            raise self.fatal_error
        if self._spool.has_batch(batch_id):
            return WriteResult(is_skipped=True)
        if self._spool.has_batches():
            return self._write_after_spooled(frame, batch_id)
        with self._lock:
            return self._deliver_with_patience(frame, batch_id)

    def _deliver_with_patience(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Deliver a batch when none is spooled. Retries for up to PATIENCE seconds if the sink is down."""
        started = time.monotonic()
        while True:
            try:
                return self._write(frame, batch_id)
            except Exception as error:  # noqa: BLE001 - as above
                cause, reason = self._record_failure(error)
                wait = min(2.0 ** (self._failures - 2), PATIENCE)
                if cause is not FailureKind.OUTAGE or time.monotonic() + wait - started > PATIENCE:
                    return self._defer(frame, batch_id, reason)
                threading.Event().wait(wait)

    def deliver(self, waiting: SpooledBatch, spark: SparkSession) -> WriteResult:
        """Deliver the oldest spooled batch. It is skipped if an earlier attempt delivered it.

        Raises the sink's exceptions, and `CheckpointMismatch` if the sink skips the batch without having that very
        batch, because another writer has committed later batches. The batch then stays spooled.
        """
        result = self._write(waiting.rows(spark), waiting.batch)
        if result.is_skipped:
            self._require_same_batch(waiting)
        hit_failpoint("aside.delivered")
        waiting.forget()
        return result

    def _require_same_batch(self, waiting: SpooledBatch) -> None:
        """Raise `CheckpointMismatch` unless the sink has the very batch that it skipped."""
        assert self._ready is not None, "used before open"
        entry = self._inner.entry(waiting.batch)
        if entry is None:
            # A sink may forget the ledger entry of a batch, but always keeps the id of its last one.
            entries = self._inner.last_committed_batches(self._ready[0])
            same = (self.identity.key, waiting.batch)
            entry = next(
                (known_entry for known_entry in entries if (known_entry.writer, known_entry.batch) == same),
                None,
            )
        if entry is not None and not entry.note.contradicts(waiting.note):
            return
        finding = (
            "has later ones but not this one" if entry is None else "has a different batch with that number"
        )
        sink, query, batch = waiting.sink, waiting.query, waiting.batch
        raise CheckpointMismatch(
            f"batch {batch} of query '{query}' waits for sink '{sink}', which {finding}: later batches were "
            f"written before it, so the sink can no longer accept it; its rows are in {waiting.folder}",
            "add the missing rows to the sink by hand, or delete the batch and backfill its rows: 'millstream "
            f"deadletter delete {query} --sink {sink} --batch {batch}', then 'millstream backfill {query}'",
        )

    def trial(self, frame: DataFrame) -> None:
        """Do nothing, because a batch that this sink refuses is spooled and ends no query."""

    def close(self) -> None:
        """Close the inner writer."""
        self._inner.close()

    @property
    def has_begun(self) -> bool:
        """Whether the sink has had a batch of this checkpoint. False while the first batch is spooled."""
        first = self._spool.oldest()
        return first is None or first.batch > 0

    def report_spooled(self) -> None:
        """Emit an event if batches are spooled at the start of the query."""
        if (first := self._spool.oldest()) is not None:
            since = format_time(first.at)
            self._emit("still_spooled", batches=self._spool.count(), reason=first.reason, since=since)

    def probe(self) -> None:
        """Probe the sink if batches are spooled and the next probe is due. Raises an error that ends the query."""
        if self._columns is not None or not self._spool.has_batches() or time.monotonic() < self._probe_at:
            return
        with self._lock:
            try:
                # Use the columns of the first spooled batch. If the writer opens, the sink is back.
                first = self._spool.oldest()
                if first is not None and self._ready is not None:
                    self._open_inner(first.rows(self._ready[0]).schema)
            except Exception as error:  # noqa: BLE001 - raised again if it ends the query
                self._record_failure(error)

    def deliver_spooled(self, ended: threading.Event) -> None:
        """Deliver spooled batches in order until a new batch needs the writer, the sink fails or the run ends.

        Raises an error that ends the query.
        """
        while self._columns is not None and not self._batch_waits and not ended.is_set():
            with self._lock:
                if self._columns is None or self._ready is None:
                    break
                waiting = self._spool.oldest()
                if waiting is None:
                    break
                try:
                    self._deliver_later(waiting, self._background_session(self._ready[0]))
                except Exception as error:  # noqa: BLE001 - as above
                    self._record_failure(error)
                    break

    def _background_session(self, spark: SparkSession) -> SparkSession:
        """Return a copy of the run's session, for deliveries in the retry thread.

        A writer may set a batch id as a session setting for one statement (Delta's MERGE), and name its rows by
        a temporary view. Two threads with one session would commit rows under each other's number. A running batch
        also has its own copy, made by Spark.
        """
        if self._session is None:
            # Python offers only newSession(), which does not copy the settings.
            copied = internals.clone_session(spark)
            self._session = type(spark)(spark.sparkContext, copied)
        return self._session

    def _write_after_spooled(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Spool the batch. If the sink is back, first deliver some of the spooled batches, then this one."""
        if self._columns is None:
            return self._defer(frame, batch_id, "batches before it wait")
        self._batch_waits = True
        try:
            if not self._lock.acquire(timeout=DRAIN):
                return self._defer(frame, batch_id, "batches before it wait")
            try:
                return self._deliver_spooled_then(frame, batch_id)
            finally:
                self._lock.release()
        finally:
            self._batch_waits = False

    def _deliver_spooled_then(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Deliver the spooled batches and then this one, as far as time and the sink allow."""
        reason = "batches before it wait"
        started, delivered = time.monotonic(), 0
        try:
            while (waiting := self._spool.oldest()) is not None:
                if delivered >= LEAST and time.monotonic() - started > DRAIN:
                    return self._defer(frame, batch_id, reason)
                self._deliver_later(waiting, frame.sparkSession)
                delivered += 1
            return self._write(frame, batch_id)
        except Exception as error:  # noqa: BLE001 - as above
            _, reason = self._record_failure(error)
        return self._defer(frame, batch_id, reason)

    def _deliver_later(self, waiting: SpooledBatch, spark: SparkSession) -> None:
        """Deliver a spooled batch and emit an event."""
        self.deliver(waiting, spark)
        self._emit("delivered_later", batch=waiting.batch, batches=self._count_spooled())

    def _defer(self, frame: DataFrame, batch_id: int, reason: str) -> WriteResult:
        """Spool a batch. If that fails too, the batch itself cannot run or the spool cannot be written."""
        try:
            self._spool.spool(frame, batch_id, reason, self.note(batch_id))
        except Exception as error:
            # This error decides whether the query starts again, not the sink's refusal, whose text could pass for an
            # outage.
            error.add_note(f"Batch {batch_id} could not be spooled for sink '{self.identity.sink}'.")
            raise error from None
        hit_failpoint("aside.kept")
        self._emit("set_aside", batch=batch_id, reason=reason, batches=self._count_spooled())
        return WriteResult(is_spooled=True)

    def _write(self, frame: DataFrame, batch_id: int) -> WriteResult:
        """Make one attempt to write."""
        result = self._open_inner(frame.schema).write(frame, batch_id)
        self._failures = 0
        if result.rows and result.is_recorded and self.has_ledger:
            self._newest = batch_id
        return result

    def _open_inner(self, schema: StructType | None) -> Writer:
        """Return the writer opened for this schema. Spooled batches may have an older schema; None accepts any."""
        assert self._ready is not None, "used before open"
        if self._inner.checkpoint is not None:
            # Spooled batches are delivered between the query's own, for each of which the engine asks.
            require_lease(self._inner.checkpoint)
        spark, query_schema = self._ready
        columns = (
            None if schema is None else [f"{field.name} {field.dataType.simpleString()}" for field in schema]
        )
        if self._columns is None or columns not in (None, self._columns):
            if self._columns is not None:
                self._inner.close()
                self._inner = self._make()
            self._columns = None
            # A sink may come back after this run stood still too. Claiming the sink again would fence out a run that
            # has taken over since.
            if self._inner.checkpoint is not None:
                require_owner(self._inner.checkpoint)
            self._verify_ledger(spark)
            self._inner.open(spark, schema or query_schema)
            self._columns = columns or [
                f"{field.name} {field.dataType.simpleString()}" for field in query_schema
            ]
        return self._inner

    def _verify_ledger(self, spark: SparkSession) -> None:
        """Verify the sink's ledger, once, and later that the sink still has what this run has written."""
        if self._verify is None and self._newest is None:
            return
        entries = self._inner.last_committed_batches(spark)
        if self._verify is not None:
            self._verify(entries)
            self._verify = None
            return
        assert self._newest is not None, "the sink was verified at its first batch"
        newest = self._newest
        if any(entry.writer == self.identity.key and entry.batch >= newest for entry in entries):
            return
        # Another writer's open transaction may hide the entry for a while.
        last_entry = self._inner.newest(spark)
        if last_entry is None or last_entry.batch < newest:
            raise CheckpointMismatch(
                f"sink '{self.identity.sink}' of query '{self.identity.query}' no longer has batch {newest}, "
                "which this run has written: it was restored or recreated, or another server has taken over",
                "restore its latest data; the next start names the batches that it lacks",
            )

    def _record_failure(self, error: Exception) -> tuple[FailureKind, str]:
        """Record a failure, so that the next attempt reopens the sink. Raises it again if it ends the query."""
        failure = classify(None, error)
        if not isinstance(error, MillstreamError) and _STOPPED.search(str(error)):
            raise error
        if failure.cause not in (FailureKind.OUTAGE, FailureKind.DEFECT):
            # If the retry thread hit this error, it ends the query at the next batch.
            self.fatal_error = error
            raise error
        self._inner.close()
        self._inner, self._columns = self._make(), None
        self._failures += 1
        self._probe_at = time.monotonic() + min(FIRST_PROBE * 2.0 ** (self._failures - 1), LAST_PROBE)
        return failure.cause, failure.message

    def _count_spooled(self) -> int | None:
        """Return the number of spooled batches, or None if they cannot be listed, which must not fail a batch."""
        with suppress(OSError):
            return self._spool.count()
        return None

    def _emit(self, event: str, **data: object) -> None:
        if self._events is not None:
            self._events.emit(event, self.identity.query, sink=self.identity.sink, **data)
