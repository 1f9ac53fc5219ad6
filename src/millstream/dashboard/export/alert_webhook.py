"""Notify a webhook of alerts that begin and end and of failed queries, in a separate thread, with retries."""

from __future__ import annotations

import json
import logging
import queue
import threading
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException, InvalidURL
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from millstream.diagnostics.failure import InvalidInput
from millstream.engine.background_threads import BackgroundThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.dashboard.state import api_schema

_log = logging.getLogger(__name__)

# Seconds before each retry, enough for an outage of some minutes.
WAITS = (1.0, 5.0, 30.0, 120.0, 300.0)
TIMEOUT = 10.0
# Maximum number of queued messages. When it is full, new ones are dropped, because the oldest alerts matter most.
WAITING = 200
# The name of the message about a query that failed, and the text about an alert that was firing at the end.
FAILED = "query failed"
ENDED = "the run ended while this alert was firing"


def post(address: str, body: bytes) -> None:
    """Send JSON to an address. Raises `OSError`, `HTTPException` or `ValueError` if it is not accepted."""
    # Only http and https: `Webhook` refuses other schemes.
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310
        return


@dataclass
class Webhook:
    """An HTTP address that receives each change of an alert once, and each failure of a query."""

    address: str
    pipeline: str
    send: Callable[[str, bytes], None] = post
    waits: tuple[float, ...] = WAITS
    _firing: dict[tuple[str, str], api_schema.Alert] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)
    _queue: queue.Queue[dict[str, Any] | None] = field(default_factory=lambda: queue.Queue(WAITING))
    _closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        if urlsplit(self.address).scheme not in ("http", "https"):
            raise InvalidInput(
                "the address in alerts_to does not begin with http:// or https://", "write the full address"
            )
        self._thread = BackgroundThread("millstream-webhook", self._work)
        self._thread.start()

    def take(self, state: api_schema.Document) -> None:
        """Queue the alerts that have changed and the queries that have failed; returns at once.

        No alert fires for a query that has ended. Its alerts are not over, but stay open until `close`.
        """
        ended = {query["name"] for query in state["queries"] if query["state"] in ("stopped", "failed")}
        for query in state["queries"]:
            if query["state"] == "failed" and query["name"] not in self._failed:
                self._failed.add(query["name"])
                failure: api_schema.Alert = {
                    "name": FAILED,
                    "query": query["name"],
                    "firing": True,
                    "since": query["since"],
                    "value": None,
                    "text": query["why"],
                }
                self._enqueue(failure)
        for alert in state["alerts"]:
            key = (alert["name"], alert["query"])
            if alert["firing"]:
                if key not in self._firing:
                    self._enqueue(alert)
                self._firing[key] = alert
            elif key in self._firing and alert["query"] not in ended:
                del self._firing[key]
                self._enqueue(alert, "over: ")

    def _enqueue(self, alert: api_schema.Alert, prefix: str = "") -> None:
        text = f"{prefix}{self.pipeline}.{alert['query']}: {alert['name']}: {alert['text']}"
        try:
            self._queue.put_nowait({"pipeline": self.pipeline, **alert, "text": text})
        except queue.Full:
            _log.warning("an alert was dropped because too many are queued: %s", text)

    def close(self) -> None:
        """Close the alerts that are firing, and send queued messages, as far as that is possible at once."""
        self._closed.set()
        while self._firing:
            _, alert = self._firing.popitem()
            self._enqueue({**alert, "firing": False, "text": ENDED})
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout=2)

    def _work(self) -> None:
        while (message := self._queue.get()) is not None:
            body = json.dumps(message, default=str).encode()
            for wait in (*self.waits, None):
                try:
                    self.send(self.address, body)
                    break
                except (OSError, HTTPException, ValueError) as error:
                    # Logged without the address, because it may be a secret.
                    reason = type(error).__name__
                    # An invalid address stays invalid, so do not retry.
                    is_permanent = isinstance(error, ValueError | InvalidURL)
                    if is_permanent or wait is None or self._closed.wait(wait):
                        _log.warning("the webhook did not receive alert '%s': %s", message["name"], reason)
                        break
