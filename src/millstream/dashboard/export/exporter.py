"""Send events to another system from a bounded queue and a separate thread, and count lost messages."""

from __future__ import annotations

import logging
import queue
import threading
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Protocol

from millstream.engine.background_threads import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.engine.events.event_bus import Event

_log = logging.getLogger(__name__)

# Maximum number of queued events: over a minute of an outage at 100 events per second, ten times the likely rate.
WAITING = 10_000
# Events within this many seconds are sent together, up to this many at once.
LINGER = 1.0
TOGETHER = 200
# Seconds before each retry of one group of messages. After a longer outage the group is lost. Events that arrive
# meanwhile wait in the queue; those that do not fit are lost as well.
WAITS = (1.0, 5.0)
# Seconds at the end of a run for sending the remaining messages.
FAREWELL = 3.0


class Exporter(Protocol):
    """Turns events into messages of one kind, and sends them. Used by one thread."""

    name: str
    """The name of the receiver's protocol in messages and metrics."""

    def convert(self, event: Event) -> Sequence[Any]:
        """Convert an event to messages; most events give none."""

    def send(self, messages: list[Any]) -> None:
        """Send messages, and remove the accepted ones from the list.

        Raises `OSError`, `HTTPException` or `ValueError` if one is not accepted.
        """

    def close(self) -> None:
        """Release resources."""


class ExportQueue:
    """Converts events with an exporter and sends the messages. `take` is thread-safe and returns at once."""

    def __init__(self, teller: Exporter, *, waits: tuple[float, ...] = WAITS, waiting: int = WAITING) -> None:
        self.name = teller.name
        self.sent_count = 0
        """The number of accepted messages."""
        self.lost_count = 0
        """The number of events that did not fit into the queue, and of messages that were not accepted."""
        self._exporter = teller
        self._waits = waits
        self._queue: queue.Queue[Event | None] = queue.Queue(waiting)
        self._closed = threading.Event()
        self._away = False
        self._thread = BackgroundThread(f"millstream-{self.name}", self._work)
        self._thread.start()

    def take(self, event: Event) -> None:
        """Queue an event, or drop and count it if the queue is full."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.lost_count += 1

    def close(self) -> None:
        """Send queued events, for at most `FAREWELL` seconds."""
        self._closed.set()
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            # The receiver is down or far behind. The thread ends with the process.
            return
        self._thread.join(timeout=FAREWELL)

    def _work(self) -> None:
        running = True
        while running:
            running, messages = self._collect()
            if messages:
                self._deliver(messages)
        self._exporter.close()

    def _collect(self) -> tuple[bool, list[Any]]:
        """Return whether to continue, and the messages for the events of one second."""
        messages: list[Any] = []
        event, deadline = self._queue.get(), time.monotonic() + LINGER
        while event is not None:
            try:
                messages += self._exporter.convert(event)
            except Exception:  # noqa: BLE001 - a failing event must not block those after it
                _log.exception("%s could not convert event %s", self.name, event.event)
            remaining = deadline - time.monotonic()
            if len(messages) >= TOGETHER or (remaining <= 0 and self._queue.empty()):
                return True, messages
            try:
                event = self._queue.get(timeout=max(0.0, remaining))
            except queue.Empty:
                return True, messages
        return False, messages

    def _deliver(self, messages: list[Any]) -> None:
        for wait in (*self._waits, None):
            before = len(messages)
            try:
                self._exporter.send(messages)
            except (OSError, HTTPException, ValueError) as error:
                self.sent_count += before - len(messages)
                # Logged without address and headers, because they may contain secrets.
                if wait is None or self._closed.wait(wait):
                    self._count_lost(messages, type(error).__name__)
                    return
            else:
                self.sent_count += before
                if self._away:
                    _log.warning(
                        "%s: the receiver accepts messages again; %d were lost so far",
                        self.name,
                        self.lost_count,
                    )
                self._away = False
                return

    def _count_lost(self, messages: list[Any], reason: str) -> None:
        self.lost_count += len(messages)
        if not self._away:
            # One line per outage; /metrics has the count.
            _log.warning(
                "%s: the receiver does not accept messages (%s); the run continues, and lost messages are counted",
                self.name,
                reason,
            )
        self._away = True
