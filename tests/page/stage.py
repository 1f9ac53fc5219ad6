"""The live page's server with events from a test, behind a wire that the test can cut."""

from __future__ import annotations

import math
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from millstream.dashboard.export.prometheus import EventCounters
from millstream.dashboard.http.app import serve
from millstream.dashboard.http.auth import AccessGuard
from millstream.dashboard.http.event_stream import EventStream
from millstream.dashboard.replay_server import GeneratedPreviews
from millstream.dashboard.run_actions import NAMES, RunActions
from millstream.dashboard.state.run_state import new_run_state
from page.made import text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from millstream.engine.events.event_bus import Event

LOCAL = "127.0.0.1"


class Wire:
    """Carries bytes between a port of its own and the server's, until it is cut."""

    def __init__(self) -> None:
        self.listener = socket.create_server((LOCAL, 0), backlog=64)
        self.port: int = self.listener.getsockname()[1]
        self.target = 0
        self._open: set[socket.socket] = set()
        self._whole = True
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def disconnect(self) -> None:
        """Break what is open, and let nothing through."""
        with self._lock:
            self._whole = False
            broken, self._open = self._open, set()
        for end in broken:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Let connections through again."""
        with self._lock:
            self._whole = True

    def close(self) -> None:
        """Cut it for good."""
        self.disconnect()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            with self._lock:
                full = self._whole
            if not full:
                near.close()
                continue
            try:
                far = socket.create_connection((LOCAL, self.target))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            for item, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(item, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {one}
        one.close()


class Looks:
    """What sinks and topics hold, made up; a test may put other rows and messages in."""

    def __init__(self) -> None:
        self.columns = [
            ("window_start", "timestamp"),
            ("views", "bigint"),
            ("carts", "bigint"),
            ("purchases", "bigint"),
            ("category", "string"),
        ]
        self.drawn: list[list[Any]] | None = None
        self.truncated = False
        self.values = ['{"event_id": "e-%d", "user_id": "u%04d", "product_id": "p%03d", "event_time": "%s"}']
        self.latest: list[dict[str, Any]] = []

    def state(self, query: str, keys: int | None, /) -> dict[str, Any] | None:
        """The windows of an aggregation."""
        return GeneratedPreviews().state(query, keys)

    def rows(self, sink: str) -> dict[str, Any] | None:
        """Windows of five minutes by category."""
        at = time.time()
        first = at - at % 300
        rows = self.drawn
        if rows is None:
            rows = [
                [
                    text(first - 300 * back),
                    int(size * wave * 9),
                    int(size * wave * 2.6),
                    int(size * wave),
                    kind,
                ]
                for back in range(24)
                for kind, size, turn in (("shoes", 61, 0.0), ("books", 44, 1.1), ("garden", 23, 2.3))
                for wave in (
                    1
                    + 0.25 * math.sin((first / 300 - back) / 5 + turn)
                    + 0.06 * math.sin((first / 300 - back) * 1.7 + turn),
                )
            ]
        return {
            "sink": sink,
            "at": text(at),
            "columns": [{"name": name, "type": kind} for name, kind in self.columns],
            "rows": rows,
            "truncated": self.truncated,
            "note": "",
            "time_column": self.columns[0][0] if self.columns[0][1] == "timestamp" else None,
            "value_columns": [name for name, kind in self.columns if kind in ("bigint", "double")],
        }

    def messages(self, source: str) -> dict[str, Any] | None:
        """Twenty messages."""
        at = time.time()
        item = []
        for number in range(20):
            value = self.values[number % len(self.values)]
            if "%" in value:
                value %= (90400 - number, number * 37 % 1000, number * 13 % 200, text(at - number / 7))
            item.append(
                {
                    "topic": source,
                    "partition": number % 4,
                    "offset": 12000 - number,
                    "timestamp": text(at - number / 10),
                    "key": f"u{number * 37 % 1000:04}",
                    "value": value,
                    "cut": False,
                }
            )
        return {"source": source, "at": text(at), "messages": item, "note": ""}

    def letters(self) -> dict[str, Any]:
        """The latest letters."""
        return {"latest": self.latest, "stored": len(self.latest), "note": ""}


class Asked(RunActions):
    """Notes the restarts that a page asks for, and does nothing."""

    def __init__(self, asked: list[str]) -> None:
        super().__init__(None, lambda: asked.append("stop"), lambda query: asked.append(f"restart {query}"))  # type: ignore[arg-type]


class Stage:
    """A run on the page: `history` first, then `tell` as it goes on."""

    def __init__(self, static: Path) -> None:
        self.wire = Wire()
        self.looks = Looks()
        self.address = f"http://{LOCAL}:{self.wire.port}/"
        self._static = static
        self.open()

    def open(self, run: str = "20260301-120000-4711") -> None:
        """A run begins, and its server."""
        self.feed = EventStream(new_run_state(run, text(time.time()), live=True), counts=EventCounters())
        self.feed.start()
        self.page = serve(self.feed, self.looks, port=0, static=self._static)
        self.wire.target = self.page.server.server_address[1]
        # The browser names the wire's port.
        self.page.server.guard = AccessGuard(self.wire.port, None)

    def end(self) -> None:
        """The process of the run is gone, and its connections with it."""
        self.wire.disconnect()
        self.page.close()
        self.feed.close()

    def history(self, events: Iterable[Event]) -> None:
        """Take in what happened before anybody looked."""
        for event in events:
            if event.event == "described":
                self.feed.folded.run["started"] = event.at
            self.feed.fold(event)

    def send(self, *events: Event) -> None:
        """Something happens."""
        for event in events:
            self.feed.take(event)

    def offer(self, asked: list[str]) -> None:
        """Let the page ask for actions, which are noted."""
        self.feed.actions = Asked(asked)
        self.feed.folded.actions = NAMES

    def close(self) -> None:
        """Put all of it away."""
        self.end()
        self.wire.close()
