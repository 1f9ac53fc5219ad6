"""Run checks one at a time in a thread, the newest text of each document only."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class CheckRequest:
    """A document to check. `is_saved`: it or a file that it reads was saved, so that Spark checks it too.

    Spark reads the file, so it checks only a document without unsaved changes.
    """

    uri: str
    text: str
    is_saved: bool = False


class CheckQueue:
    """A thread that calls `run` for each request. A newer request for a document replaces a waiting one."""

    def __init__(self, run: Callable[[CheckRequest], None]) -> None:
        self._run = run
        self._waiting: dict[str, CheckRequest] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="millstream-checks", daemon=True)
        self._thread.start()

    def request(self, request: CheckRequest) -> None:
        """Queue a request; returns at once. A saved text stays saved when the same text is queued again."""
        with self._changed:
            waiting = self._waiting.get(request.uri)
            if waiting is not None and waiting.text == request.text and waiting.is_saved:
                request = replace(request, is_saved=True)
            self._waiting[request.uri] = request
            self._changed.notify()

    def close(self) -> None:
        """End after the running check, without those that wait."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                uri = next(iter(self._waiting))
                request = self._waiting.pop(uri)
            self._run(request)
