"""Carries what happens to a program elsewhere: a bounded queue, a thread of its own, what is lost is counted."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.runtime.events import Event

_log = logging.getLogger(__name__)

# At a hundred events a second, which is ten times what is likely, more than a minute of a receiver that is away.
WAITING = 10_000
# What comes within so many seconds is sent together, and never more than so many at once.
LINGER = 1.0
TOGETHER = 200
# Seconds before each further try of one parcel. A receiver that is away for longer loses it: what comes meanwhile
# waits in the queue, and what the queue cannot hold is lost as well.
WAITS = (1.0, 5.0)
# At the end of a run a receiver gets so many seconds for what is left.
FAREWELL = 3.0


class Teller(Protocol):
    """Turns events into messages of one kind, and sends them. Used by one thread."""

    name: str
    """Of the receiver's protocol, as messages and metrics have it."""

    def told(self, event: Event) -> Sequence[Any]:
        """The messages that an event makes, none for most."""

    def send(self, messages: list[Any]) -> None:
        """Send messages, and take those that were taken out of the list. Raises `OSError` where one is not."""

    def close(self) -> None:
        """Let go of what it holds."""


class Outward:
    """Sends what a teller makes of events. `take` may be called from any thread and returns at once."""

    def __init__(self, teller: Teller, *, waits: tuple[float, ...] = WAITS, waiting: int = WAITING) -> None:
        self.name = teller.name
        self.sent = 0
        """Messages that were taken."""
        self.lost = 0
        """Events that found the queue full, and messages that were not taken."""
        self._teller = teller
        self._waits = waits
        self._queue: queue.Queue[Event | None] = queue.Queue(waiting)
        self._closed = threading.Event()
        self._away = False
        self._thread = threading.Thread(target=self._work, name=f"millstream-{self.name}", daemon=True)
        self._thread.start()

    def take(self, event: Event) -> None:
        """Note an event; a queue that is full drops it and counts it."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.lost += 1

    def close(self) -> None:
        """Send what waits, as far as that goes within some seconds."""
        self._closed.set()
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            # It is away, or far behind: the thread ends with the process.
            return
        self._thread.join(timeout=FAREWELL)

    def _work(self) -> None:
        going = True
        while going:
            going, parcel = self._parcel()
            if parcel:
                self._deliver(parcel)
        self._teller.close()

    def _parcel(self) -> tuple[bool, list[Any]]:
        """Messages of the events of one second, and whether more will come."""
        parcel: list[Any] = []
        event, until = self._queue.get(), time.monotonic() + LINGER
        while event is not None:
            try:
                parcel += self._teller.told(event)
            except Exception:  # noqa: BLE001 - an event that cannot be told must not silence those after it
                _log.exception("%s could not tell %s", self.name, event.event)
            left = until - time.monotonic()
            if len(parcel) >= TOGETHER or (left <= 0 and self._queue.empty()):
                return True, parcel
            try:
                event = self._queue.get(timeout=max(0.0, left))
            except queue.Empty:
                return True, parcel
        return False, parcel

    def _deliver(self, parcel: list[Any]) -> None:
        for wait in (*self._waits, None):
            before = len(parcel)
            try:
                self._teller.send(parcel)
            except OSError as refused:
                self.sent += before - len(parcel)
                # Never with the address or a header: either may carry a secret.
                if wait is None or self._closed.wait(wait):
                    self._missed(parcel, type(refused).__name__)
                    return
            else:
                self.sent += before
                if self._away:
                    _log.warning("%s is taken again; %d messages were lost so far", self.name, self.lost)
                self._away = False
                return

    def _missed(self, parcel: list[Any], why: str) -> None:
        self.lost += len(parcel)
        if not self._away:
            # Once for an outage: a receiver that is away for a day is one line, and a figure in /metrics.
            _log.warning("%s is not taken (%s); the run goes on, and what is lost is counted", self.name, why)
        self._away = True
