"""What happens in a run, as values: the live table, `--json`, the log and later the page all read these."""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

Handler = Callable[["Event"], None]
_log = logging.getLogger(__name__)


def now() -> str:
    """The time as ISO-8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Event:
    """Something that happened to a query, or to the run when `query` is empty.

    `event` is one of run_started, query_started, batch_written, batch_committed, dead_letter, set_aside,
    delivered_later, gap, adopted, warning, waiting, going_on, idle, retry, query_failed, query_stopped, stopping,
    run_stopped.
    """

    event: str
    query: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    at: str = field(default_factory=now)

    def to_json(self) -> str:
        """One line of JSON: the fixed fields first, then the data."""
        told = asdict(self)
        data = told.pop("data")
        if not told["query"]:
            del told["query"]
        return json.dumps({**told, **data}, default=str)


class Events:
    """Hands each event to every handler, in order, on a thread of its own, so that no query waits for one."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._handlers: list[Handler] = []
        self._thread = threading.Thread(target=self._deliver, name="millstream-events", daemon=True)
        self._thread.start()

    def listen(self, handler: Handler) -> None:
        """Add a handler. It sees events that come after this call."""
        self._handlers.append(handler)

    def tell(self, event: str, query: str = "", **data: Any) -> None:
        """Note that something happened; returns at once."""
        self._queue.put(Event(event, query, data))

    def close(self) -> None:
        """Deliver what is waiting, then end."""
        self._queue.put(None)
        self._thread.join(timeout=5)

    def _deliver(self) -> None:
        while (event := self._queue.get()) is not None:
            for handler in self._handlers:
                try:
                    handler(event)
                except Exception:  # noqa: BLE001 - a listener that fails must not silence the others
                    _log.exception("a listener of run events failed on %s", event.event)
