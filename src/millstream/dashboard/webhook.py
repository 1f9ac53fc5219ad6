"""Tells a webhook of alerts that begin to fire, and that end: retried, in a thread of its own, never waited for."""

from __future__ import annotations

import json
import logging
import queue
import threading
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.dashboard import shapes

_log = logging.getLogger(__name__)

# Seconds before each further try: an outage of some minutes loses nothing.
WAITS = (1.0, 5.0, 30.0, 120.0, 300.0)
TIMEOUT = 10.0
# Words that wait for a webhook that is away; the oldest alerts are the ones worth telling.
WAITING = 200


def post(address: str, body: bytes) -> None:
    """Send JSON to an address. Raises `OSError` where it is not taken."""
    # Only http and https come here: `Webhook` refuses others.
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310
        return


@dataclass
class Webhook:
    """An address over HTTP that is told of each change of an alert, once."""

    address: str
    pipeline: str
    send: Callable[[str, bytes], None] = post
    waits: tuple[float, ...] = WAITS
    _firing: set[tuple[str, str]] = field(default_factory=set)
    _queue: queue.Queue[dict[str, Any] | None] = field(default_factory=lambda: queue.Queue(WAITING))
    _closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        if urlsplit(self.address).scheme not in ("http", "https"):
            raise ValueError("a webhook's address begins with http:// or https://")
        self._thread = threading.Thread(target=self._work, name="millstream-webhook", daemon=True)
        self._thread.start()

    def take(self, alerts: list[shapes.Alert]) -> None:
        """Note which alerts have changed; returns at once."""
        for alert in alerts:
            key = (alert["name"], alert["query"])
            if alert["firing"] == (key in self._firing):
                continue
            (self._firing.add if alert["firing"] else self._firing.discard)(key)
            text = f"{self.pipeline}.{alert['query']}: {alert['name']}: {alert['text']}"
            told = {"pipeline": self.pipeline, **alert, "text": text if alert["firing"] else f"over: {text}"}
            try:
                self._queue.put_nowait(told)
            except queue.Full:
                _log.warning("an alert could not be told, too many wait: %s", text)

    def close(self) -> None:
        """Tell what waits, as far as that goes at once."""
        self._closed.set()
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout=2)

    def _work(self) -> None:
        while (told := self._queue.get()) is not None:
            body = json.dumps(told, default=str).encode()
            for wait in (*self.waits, None):
                try:
                    self.send(self.address, body)
                    break
                except OSError as refused:
                    # Not with the address: it is a secret of its own.
                    said = type(refused).__name__
                    if wait is None or self._closed.wait(wait):
                        _log.warning("the webhook was not told of '%s': %s", told["name"], said)
                        break
