"""Collect the events of a run without slowing it: a bounded queue, and a thread that updates state and log."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.dashboard.state import kafka_lag, timestamps
from millstream.engine.background_threads import BackgroundThread
from millstream.engine.events.event_bus import Event
from millstream.spec.secrets.redaction import redact, redact_deep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from millstream.dashboard.export.exporter import ExportQueue
    from millstream.dashboard.export.prometheus import EventCounters
    from millstream.dashboard.export.spark_metrics import Engine
    from millstream.dashboard.run_actions import RunActions
    from millstream.dashboard.run_log import RunLog
    from millstream.dashboard.state import api_schema
    from millstream.dashboard.state.kafka_lag import PartitionOffsets
    from millstream.dashboard.state.run_state import RunState

_log = logging.getLogger(__name__)
# Seconds without writing the log of the run after a write that failed, as on a full disk.
LOG_PAUSE = 60.0

# Maximum number of queued events: half a minute at a thousand events per second, ten times the likely rate.
WAITING = 30_000
# Entries that a reconnecting browser can still get: a quarter of an hour at ten batches per second.
REPLAYED = 8_000
# Seconds for which a computed state is reused.
FRESH = 0.5
# Seconds between two states when nothing happens, because ages grow by themselves.
BEAT = 2.0


@dataclass(frozen=True)
class StreamEntry:
    """One entry of the stream: its position, its id, its data as JSON."""

    place: int
    id: str
    data: str


class EventStream:
    """The state of a run for any number of readers. `take` is thread-safe and returns at once."""

    def __init__(
        self,
        folded: RunState,
        *,
        counts: EventCounters,
        log: RunLog | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folded = folded
        self.counts = counts
        self.clock = clock
        self.dropped = 0
        """Events that were lost because the queue was full."""
        self.runs: list[dict[str, Any]] = []
        """Earlier runs of the same pipeline in the history: `id`, `from`, `to` in seconds."""
        self.outward: list[ExportQueue] = []
        """Exporters that receive each event, with secrets redacted."""
        self.engine: Engine | None = None
        """Spark's own metrics, while the session is open."""
        self.ended_by: int | None = None
        """The exit code of a run that ended before it could report it."""
        self.on_state: Callable[[api_schema.Document], None] | None = None
        """Receives the state every few seconds, and at the end."""
        self.actions: RunActions | None = None
        """Carries out what the page asks for; None if nothing may be asked."""
        self._log = log
        self._log_from = 0.0
        if log is not None:
            log.heading = self._totals
        self._number = 0
        self._place = 0
        self._ring: deque[StreamEntry] = deque(maxlen=REPLAYED)
        self._queue: queue.Queue[Event | None] = queue.Queue(WAITING)
        self._changed = threading.Condition()
        self._cached: tuple[float, int, api_schema.Document] | None = None
        self._closed = False
        self._thread = BackgroundThread("millstream-page", self._work)

    def start(self) -> None:
        """Start to process queued events."""
        self._thread.start()

    def take(self, event: Event) -> None:
        """Queue an event. If the queue is full, drop and count it, so that no query ever waits."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Process queued events, then stop and notify readers."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(timeout=5)
        if self.ended_by is not None and self.folded.run["ended"] is None and not self._closed:
            self.fold(Event("run_stopped", data={"exit_code": self.ended_by}))
        with self._changed:
            self._closed = True
            self.folded.run["live"] = False
            self._cached = None
            self._changed.notify_all()
        if self._log is not None:
            self._log.close()

    def engine_figures(self) -> Mapping[str, float]:
        """Return Spark's own metrics by their names; empty if no session is open."""
        engine = self.engine
        return {} if engine is None else engine.figures()

    def log_failure(self, what: str) -> None:
        """Log the traceback of a failed response; called from its exception handler."""
        _log.exception("the live page could not respond to %s", what)

    @property
    def is_closed(self) -> bool:
        """Whether the run has ended and all events were processed."""
        return self._closed

    def fold(self, event: Event) -> None:
        """Process one event in the calling thread."""
        if event.event != "batch_committed":
            # Skips redaction: figures contain no secrets, and are nine of ten events.
            event = type(event)(event.event, event.query, redact_deep(event.data), event.at)
        for exporter in self.outward:
            exporter.take(event)
        # A segment begins with the totals, which must not include the first event that follows.
        self._use_log(lambda log: log.begin())
        with self._changed:
            self._number += 1
            entry, dot = self.folded.take(event, self._number)
            self.counts.take(event)
            self.publish({**entry, "point": dot})
            self._changed.notify_all()
        self._use_log(lambda log: log.write(self._line(event)))

    def _use_log(self, write: Callable[[RunLog], None]) -> None:
        """Write to the log of the run, but not soon after a failure: a full disk must not end the page."""
        if self._log is None or time.monotonic() < self._log_from:
            return
        try:
            write(self._log)
        except OSError as error:
            _log.warning("the log of the run is not written for %g s: %s", LOG_PAUSE, error)
            self._log_from = time.monotonic() + LOG_PAUSE
            self._log.abandon()

    def observe_ends(self, source: str, ends: PartitionOffsets, at: float) -> None:
        """Record where a source ends, as its broker said at a time. Not part of the log: it is old soon."""
        with self._changed:
            self.folded.observe_ends(source, ends, at)
            self._cached = None

    def observe_silence(self, source: str, error: str, at: float) -> None:
        """Record that the broker of a source did not respond."""
        with self._changed:
            self.folded.observe_silence(source, redact(error), at)
            self._cached = None

    def _totals(self) -> Iterable[str]:
        """Yield the totals of each query so far, as events that only the log contains."""
        at = timestamps.format_timestamp(self.clock())
        for query in self.folded.queries.values():
            totals = Event("totals", query.name, {"counts": dict(query.counts), "starts": query.starts}, at)
            yield self._line(totals)

    def _line(self, event: Event) -> str:
        return f'{event.to_json()[:-1]}, "n": {self._number}}}'

    def replay_event(self, event: Event, number: int) -> None:
        """Process an event of a past run."""
        with self._changed:
            self._number = number
            self.folded.take(event, number)
            self.counts.take(event)

    def publish(self, entry: dict[str, Any]) -> None:
        """Append an entry to the stream."""
        self._place += 1
        self._ring.append(StreamEntry(self._place, entry["id"], json.dumps(entry, default=str)))

    def _work(self) -> None:
        reported = 0.0
        while True:
            try:
                event = self._queue.get(timeout=1.0)
            except queue.Empty:
                event = _NOTHING
            if event is None:
                self._report()
                return
            try:
                if event is not _NOTHING:
                    self.fold(event)
            except Exception:  # noqa: BLE001 - a failing event must not block those after it
                _log.exception("the live page could not process event %s", event.event)
            if time.monotonic() - reported > BEAT:
                reported = time.monotonic()
                self._report()

    def _report(self) -> None:
        try:
            if self.on_state is not None:
                self.on_state(self.document())
        except Exception:  # noqa: BLE001 - alerts that fail must not end the page
            _log.exception("the alerts could not be evaluated")

    def document(self) -> api_schema.Document:
        """Return the state. A state of the last half second is reused if nothing has happened since."""
        with self._changed:
            now = self.clock()
            if self._cached and self._cached[1] == self._place and abs(now - self._cached[0]) < FRESH:
                return self._cached[2]
            document = self.folded.document(now)
            self._cached = (now, self._place, document)
            return document

    def series(self, query: str, minutes: float) -> dict[str, Any] | None:
        """Return the history of a query's plots, or None if there is no such query."""
        with self._changed:
            state = self.folded.queries.get(query)
            if state is None:
                return None
            ended = self.folded.run["ended"]
            now = timestamps.parse(ended) if ended else self.clock()
            started = timestamps.parse(self.folded.run["started"])
            this_run = {
                "id": self.folded.run["id"],
                "from": started,
                "to": timestamps.parse(ended) if ended else None,
            }
            return {
                "query": query,
                "id": self.folded.last,
                "trigger_seconds": state.interval,
                **state.series.as_json(now - minutes * 60),
                "runs": [*self.runs, this_run],
            }

    def partitions(self, query: str) -> list[api_schema.PartitionLag] | None:
        """Return the lag of each partition that a query reads, or None if there is no such query."""
        with self._changed:
            state = self.folded.queries.get(query)
            return None if state is None else kafka_lag.partition_json(state.topics)

    def where(self, last: str | None) -> int | None:
        """Return the position after an id, the end of the stream without an id, or None if the id is gone."""
        with self._changed:
            # The events of a past run are in its state, and not in the stream.
            if not last or last == self.folded.last:
                return self._place
            return next((message.place for message in reversed(self._ring) if message.id == last), None)

    def after(self, place: int, timeout: float) -> list[StreamEntry] | None:
        """Return entries after a position, waiting up to `timeout` seconds for the first; None if some are gone."""
        with self._changed:
            if self._place <= place and not self._closed:
                self._changed.wait(timeout)
            if self._ring and self._ring[0].place > place + 1:
                return None
            return [message for message in self._ring if message.place > place]

    @property
    def place(self) -> int:
        """The position of the last entry."""
        return self._place

    def remember(self, earlier: Iterable[tuple[RunState, list[dict[str, Any]]]]) -> None:
        """Add earlier runs to the history, oldest first: their points, log lines and entries."""
        for run, entries in earlier:
            for name, query in run.queries.items():
                if name in self.folded.queries:
                    for point in query.series.points:
                        self.folded.queries[name].series.add(point)
            self.folded.log.extend(run.log)
            started = timestamps.parse(run.run["started"])
            last = entries[-1]["at"] if entries else run.run["started"]
            self.runs.append({"id": run.run["id"], "from": started, "to": timestamps.parse(last)})
            for entry in entries:
                self.publish(entry)


class _Nothing:
    """A marker that no event arrived for a second."""

    event = "nothing"


_NOTHING: Any = _Nothing()
