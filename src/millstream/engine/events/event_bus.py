"""Events of a run, which the live table, `--json`, the log and the page all consume."""

from __future__ import annotations

import json
import logging
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from millstream.engine.background_threads import BackgroundThread, ThreadFailure, subscribe, unsubscribe
from millstream.spec.secrets.redaction import redact_deep

Handler = Callable[["Event"], None]
_log = logging.getLogger(__name__)

CLOSING = 5.0
"""The most seconds that the end of a run waits for the last events to be handled."""
WAITING = 30_000
"""The most events that wait for a handler: half a minute at a thousand a second, some 100 MB at worst."""
REPORT = "the run continues; report this message to the millstream project"
LOST = "events are missing in the output of the run, because the program or terminal that reads it hung"
READ = "let it read all the time; the folder of this run in .millstream/runs has all events"


def now() -> str:
    """Return the time as ISO-8601 in UTC, to the millisecond."""
    return format_time(datetime.now(UTC))


def format_time(moment: datetime) -> str:
    """Format a time in UTC as ISO-8601, to the millisecond."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Event:
    """Something that happened to a query, or to the run when `query` is empty.

    `event` is one of phase, run_started, plan, query_started, batch_started, batch_written, batch_committed,
    dead_letter, set_aside, still_spooled, delivered_later, gap, adopted, warning, waiting, going_on, idle, retry,
    query_failed, query_stopped, action, stopping, run_stopped.
    """

    event: str
    query: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    at: str = field(default_factory=now)

    def to_json(self) -> str:
        """Return one line of JSON: the fixed fields first, then the data."""
        query = {"query": self.query} if self.query else {}
        return json.dumps({"event": self.event, **query, "at": self.at, **self.data}, default=str)


class EventBus:
    """Redacts each event and passes it to every handler in order, each on its own thread.

    So no query waits for a handler, and no handler for another: the alerts of a run come although a program hangs
    that reads its output. A handler that hangs misses events once `WAITING` of them wait for it. A warning says how
    many, once it has caught up with half of them.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._listeners: list[_Listener] = []
        self._thread = BackgroundThread("millstream-events", self._deliver)
        subscribe(self._report_thread_failure)
        self._thread.start()

    def listen(self, handler: Handler) -> None:
        """Add a handler for all events after this call. One that raises `BrokenPipeError` gets no more events."""
        self._listeners.append(_Listener(handler, len(self._listeners), self._report_lost))

    def emit(self, event: str, query: str = "", **data: Any) -> None:
        """Queue an event and return at once."""
        self._queue.put(Event(event, query, data))

    def close(self) -> None:
        """Deliver the queued events, then end. Waits at most `CLOSING` seconds for handlers that hang."""
        unsubscribe(self._report_thread_failure)
        self._queue.put(None)
        until = time.monotonic() + CLOSING
        for thread in (self._thread, *(listener.thread for listener in self._listeners)):
            thread.join(timeout=max(0.0, until - time.monotonic()))

    def _report_thread_failure(self, failure: ThreadFailure) -> None:
        """Emit a warning to all handlers, because a background thread of the run failed."""
        self.emit("warning", what=str(failure), fix=REPORT, thread=failure.thread)

    def _report_lost(self, events: int) -> None:
        """Emit a warning to all handlers, because one of them missed events. Called in the thread of that handler."""
        self.emit("warning", what=f"{LOST}: {events:,}", fix=READ, lost=events)

    def _deliver(self) -> None:
        while (queued := self._queue.get()) is not None:
            event = Event(queued.event, queued.query, redact_deep(queued.data), queued.at)
            for listener in self._listeners:
                listener.take(event)
        for listener in self._listeners:
            listener.waiting.put(None)


class _Listener:
    """A handler, the events that wait for it, and the thread that calls it."""

    def __init__(self, handler: Handler, number: int, report_lost: Callable[[int], None]) -> None:
        self._handler = handler
        self._report_lost = report_lost
        self.waiting: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self.lost = 0
        """Events that this handler has missed. Written only by the thread that calls `take`."""
        self._reported = 0
        self.thread = BackgroundThread(f"millstream-events-{number}", self._work)
        self.thread.start()

    def take(self, event: Event) -> None:
        """Queue an event, or count it as lost if too many wait. Returns at once."""
        # Only this thread adds events, so the queue cannot grow between the two lines.
        if self.waiting.qsize() >= WAITING:
            self.lost += 1
        else:
            self.waiting.put(event)

    def _work(self) -> None:
        while (event := self.waiting.get()) is not None:
            # Not before there is room: the warning must reach this handler too, and be the only one.
            if (lost := self.lost) > self._reported and self.waiting.qsize() <= WAITING // 2:
                self._report_lost(lost - self._reported)
                self._reported = lost
            try:
                self._handler(event)
            except BrokenPipeError:
                # Nobody reads the output any more, and nobody will.
                _log.warning("the output of the run is closed; it is not written any more")
                self._handler = lambda _: None
            except Exception:  # noqa: BLE001 - a failing handler must not end the thread
                _log.exception("a listener of run events failed on %s", event.event)
