"""Events of a run, which the live table, `--json`, the log and the page all consume."""

from __future__ import annotations

import json
import logging
import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from millstream.engine.background_threads import BackgroundThread, ThreadFailure, subscribe, unsubscribe
from millstream.spec.secrets.redaction import redact_deep

Handler = Callable[["Event"], None]
_log = logging.getLogger(__name__)

REPORT = "the run continues; report this message to the millstream project"


def now() -> str:
    """Return the time as ISO-8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Event:
    """Something that happened to a query, or to the run when `query` is empty.

    `event` is one of phase, run_started, plan, query_started, batch_started, batch_written, batch_committed,
    dead_letter, set_aside, delivered_later, gap, adopted, warning, waiting, going_on, idle, retry, query_failed,
    query_stopped, stopping, run_stopped.
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
    """Redacts each event and passes it to every handler in order, on its own thread, so that no query waits."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._handlers: list[Handler] = []
        self._thread = BackgroundThread("millstream-events", self._deliver)
        subscribe(self._report_thread_failure)
        self._thread.start()

    def listen(self, handler: Handler) -> None:
        """Add a handler for all events after this call."""
        self._handlers.append(handler)

    def emit(self, event: str, query: str = "", **data: Any) -> None:
        """Queue an event and return at once."""
        self._queue.put(Event(event, query, data))

    def close(self) -> None:
        """Deliver the queued events, then end."""
        unsubscribe(self._report_thread_failure)
        self._queue.put(None)
        self._thread.join(timeout=5)

    def _report_thread_failure(self, failure: ThreadFailure) -> None:
        """Emit a warning to all handlers, because a background thread of the run failed."""
        self.emit("warning", what=str(failure), fix=REPORT, thread=failure.thread)

    def _deliver(self) -> None:
        while (queued := self._queue.get()) is not None:
            event = Event(queued.event, queued.query, redact_deep(queued.data), queued.at)
            for handler in self._handlers:
                try:
                    handler(event)
                except Exception:  # noqa: BLE001 - a failing listener must not block the others
                    _log.exception("a listener of run events failed on %s", event.event)
