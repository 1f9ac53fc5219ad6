"""A sink that may be down: what it refuses is set aside and delivered later, in order, while the query goes on."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING

from millstream.connectors.failpoints import reach
from millstream.connectors.remembered import nothing
from millstream.connectors.sink import SinkIdentity, Writer, Written
from millstream.pipeline.model import OnError
from millstream.runtime.aside import Shelf
from millstream.runtime.failures import Cause, classify
from millstream.runtime.hooks import bound
from millstream.runtime.sifting import sifting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from millstream.connectors.remembered import Entry, Note
    from millstream.pipeline.model import Pipeline, SinkEntry
    from millstream.runtime.aside import SetAside
    from millstream.runtime.events import Events

# An outage is waited out so long, in seconds, before its first batch is set aside: a restart of a database takes
# as long. It is waited once; while anything is set aside, an attempt that fails sets aside at once.
PATIENCE = 10.0
# Waits between probes of a sink that is down, in seconds: the first, doubled each time, and the longest.
FIRST_PROBE, LAST_PROBE = 1.0, 60.0
# A sink that is back gets what waits before the batch at hand, so long, in seconds: the other sinks' next batch
# waits for it, and as long for a delivery in the background. At least two batches, so that fewer wait after each.
DRAIN = 5.0
LEAST = 2
# The batch was stopped from outside; that says nothing about the sink.
_STOPPED = re.compile(r"InterruptedException|InterruptedIOException|SparkContext was shut down|cancelled")


class DeferredWriter(Writer):
    """Writes through another writer, or sets the batch aside.

    A batch is delivered only when nothing older of the sink waits, so that rows of a key come in order. Batches
    that waited are delivered with their own numbers: a sink that remembers numbers passes over one that it has.

    Two threads use it. That of the batches never asks a sink that is down: while anything waits and the writer is
    not open, it sets aside and goes on. Another one (`runtime/probing.py`) finds out whether the sink is back, and
    delivers. Whoever has the turn has the writer; setting aside needs no turn, because a shelf that is not empty is
    looked at again by whoever delivers, before the turn is given back.
    """

    def __init__(
        self, identity: SinkIdentity, make: Callable[[], Writer], shelf: Shelf, events: Events | None
    ) -> None:
        super().__init__(identity)
        self._make = make
        self._shelf = shelf
        self._events = events
        self._inner = make()
        self._ready: tuple[SparkSession, StructType] | None = None
        self._open: list[str] | None = None
        self._failures = 0
        self._probe_at = 0.0
        self._judge: Callable[[Sequence[Entry]], None] | None = None
        self.sums = self._inner.sums
        self._turn = threading.Lock()
        self._wanted = False
        self._ends: Exception | None = None
        # What is set aside is the batch run once more.
        self.passes = self._inner.passes + 1

    def open(self, spark: SparkSession, schema: StructType) -> None:
        """Open the writer; a sink that is down, or refuses, is opened when it is back. Raises where it is fenced."""
        self._ready = (spark, schema)
        try:
            self._opened(schema)
        except Exception as error:  # noqa: BLE001 - raised again where it ends the query
            self._failed(error)

    def answer(self, spark: SparkSession, judge: Callable[[Sequence[Entry]], None]) -> None:
        """Have it judged at once; of a sink that is down when it is opened, before it gets a batch."""
        self._judge = judge
        try:
            self._answered(spark)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)

    def entry(self, batch_id: int) -> Entry | None:
        """What the sink remembers of a batch; None where it has it not, or cannot be asked."""
        return None if self._open is None or self._shelf.holds(batch_id) else self._inner.entry(batch_id)

    def holds(self, batch_id: int) -> bool:
        """Is the batch delivered or set aside? False where the sink cannot be asked."""
        if self._shelf.holds(batch_id):
            return True
        with self._turn:
            try:
                return self._opened(None).holds(batch_id)
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(error)
                return False

    def write(self, frame: DataFrame, batch_id: int) -> Written:
        """Deliver one batch behind all that waits, or set it aside. Raises what ends the query."""
        if self._ends is not None:
            raise self._ends
        if self._shelf.holds(batch_id):
            return Written(skipped=True)
        if self._shelf.waits():
            return self._behind(frame, batch_id)
        with self._turn:
            return self._at_once(frame, batch_id)

    def _at_once(self, frame: DataFrame, batch_id: int) -> Written:
        """Deliver a batch that nothing waits before; an outage is waited out for a little."""
        started = time.monotonic()
        while True:
            try:
                return self._write(frame, batch_id)
            except Exception as error:  # noqa: BLE001 - as above
                cause, reason = self._failed(error)
                wait = min(2.0 ** (self._failures - 2), PATIENCE)
                if cause is not Cause.OUTAGE or time.monotonic() + wait - started > PATIENCE:
                    return self._put(frame, batch_id, reason, error)
                threading.Event().wait(wait)

    def deliver(self, waiting: SetAside, spark: SparkSession) -> Written:
        """Deliver the oldest batch that waits. Raises what the sink raises."""
        written = self._write(waiting.rows(spark), waiting.batch)
        reach("aside.delivered")
        waiting.forget()
        return written

    def trial(self, frame: DataFrame) -> None:
        """Nothing: what this sink refuses is set aside and ends no query."""

    def close(self) -> None:
        """Let go of the writer."""
        self._inner.close()

    def probe(self) -> None:
        """Is the sink back, now that batches wait and it is time to ask? Raises what ends the query."""
        if self._open is not None or not self._shelf.waits() or time.monotonic() < self._probe_at:
            return
        with self._turn:
            try:
                # With the columns of what comes first; a writer that is open is what tells that the sink is back.
                first = self._shelf.oldest()
                if first is not None and self._ready is not None:
                    self._opened(first.rows(self._ready[0]).schema)
            except Exception as error:  # noqa: BLE001 - raised again where it ends the query
                self._failed(error)

    def drain(self, ended: threading.Event) -> int:
        """Deliver what waits, in order, until a batch wants the turn, the sink fails, or the run ends; how many.

        Raises what ends the query.
        """
        done = 0
        while self._open is not None and not self._wanted and not ended.is_set():
            with self._turn:
                if self._open is None or self._ready is None:
                    break
                waiting = self._shelf.oldest()
                if waiting is None:
                    break
                try:
                    self._later(waiting, self._ready[0])
                except Exception as error:  # noqa: BLE001 - as above
                    self._failed(error)
                    break
                done += 1
        return done

    def _behind(self, frame: DataFrame, batch_id: int) -> Written:
        """Set the batch aside; behind some of what waits and then this batch, where the sink is known to be back."""
        if self._open is None:
            return self._put(frame, batch_id, "batches before it wait", None)
        self._wanted = True
        try:
            if not self._turn.acquire(timeout=DRAIN):
                return self._put(frame, batch_id, "batches before it wait", None)
            try:
                return self._behind_some(frame, batch_id)
            finally:
                self._turn.release()
        finally:
            self._wanted = False

    def _behind_some(self, frame: DataFrame, batch_id: int) -> Written:
        """Deliver what waits and then this batch, as far as the time and the sink allow."""
        reason, failure = "batches before it wait", None
        since, done = time.monotonic(), 0
        try:
            while (waiting := self._shelf.oldest()) is not None:
                if done >= LEAST and time.monotonic() - since > DRAIN:
                    return self._put(frame, batch_id, reason, None)
                self._later(waiting, frame.sparkSession)
                done += 1
            return self._write(frame, batch_id)
        except Exception as error:  # noqa: BLE001 - as above
            _, reason = self._failed(error)
            failure = error
        return self._put(frame, batch_id, reason, failure)

    def _later(self, waiting: SetAside, spark: SparkSession) -> None:
        """Deliver a batch that waited, and tell of it."""
        self.deliver(waiting, spark)
        self._tell("delivered_later", batch=waiting.batch)

    def _put(self, frame: DataFrame, batch_id: int, reason: str, failure: Exception | None) -> Written:
        """Set a batch aside. Where that fails too, the batch itself cannot be run, or there is no place for it."""
        try:
            self._shelf.put(frame, batch_id, reason)
        except Exception as error:
            # Whatever it is goes on, with what the sink had refused as its cause.
            raise error from failure
        reach("aside.kept")
        self._tell("set_aside", batch=batch_id, reason=reason)
        return Written(later=True)

    def _write(self, frame: DataFrame, batch_id: int) -> Written:
        """One attempt."""
        written = self._opened(frame.schema).write(frame, batch_id)
        self._failures = 0
        return written

    def _opened(self, schema: StructType | None) -> Writer:
        """The writer, open for these columns: those that waited may be of another time. None for any columns."""
        assert self._ready is not None, "used before open"
        spark, usual = self._ready
        wanted = None if schema is None else [f"{one.name} {one.dataType.simpleString()}" for one in schema]
        if self._open is None or wanted not in (None, self._open):
            if self._open is not None:
                self._inner.close()
                self._inner = self._make()
            self._open = None
            self._answered(spark)
            self._inner.open(spark, schema or usual)
            self._open = wanted or [f"{one.name} {one.dataType.simpleString()}" for one in usual]
        return self._inner

    def _answered(self, spark: SparkSession) -> None:
        """Have what the sink remembers judged, once."""
        if self._judge is not None:
            self._judge(self._inner.remembered(spark))
            self._judge = None

    def _failed(self, error: Exception) -> tuple[Cause, str]:
        """Take in a failure; the next attempt opens the sink anew. Raised again where it ends the query."""
        failure = classify(None, error)
        if _STOPPED.search(str(error)):
            raise error
        if failure.cause not in (Cause.OUTAGE, Cause.DEFECT):
            # Met beside the batches, it ends the query with the next one.
            self._ends = error
            raise error
        self._inner.close()
        self._inner, self._open = self._make(), None
        self._failures += 1
        self._probe_at = time.monotonic() + min(FIRST_PROBE * 2.0 ** (self._failures - 1), LAST_PROBE)
        return failure.cause, failure.message

    def _tell(self, event: str, **data: object) -> None:
        if self._events is not None:
            self._events.tell(event, self.identity.query, sink=self.identity.sink, **data)


def writer(
    pipeline: Pipeline,
    query: str,
    query_id: str,
    key: str,
    entry: SinkEntry,
    events: Events | None,
    note: Callable[[int], Note] = nothing,
) -> Writer:
    """The writer of a sink of a query, as its entry says what becomes of a batch that the sink refuses.

    `note` tells what the sink is to remember of a batch.
    """
    identity = SinkIdentity(pipeline.name, query, query_id, key, pipeline.queries[query].output_mode)

    def make() -> Writer:
        made = bound(entry.sink, pipeline.folder).writer(identity)
        made.note = note
        return made

    if entry.on_error is OnError.DEAD_LETTER_ROWS:
        return sifting(pipeline, identity, make(), events)
    if entry.on_error is not OnError.DEAD_LETTER:
        return make()
    return DeferredWriter(identity, make, Shelf.of(pipeline, query, query_id, key), events)
