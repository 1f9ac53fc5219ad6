"""Run work in daemon threads that report each failure and start again."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.spec.secrets.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

# A thread that fails more than RESTARTS times in WITHIN seconds would fail at every start, so it is not restarted.
RESTARTS = 5
WITHIN = 60.0
# Longer messages are cut because some libraries put a whole response into one.
_MAX_CHARACTERS = 400

_lock = threading.Lock()
_listeners: list[Callable[[ThreadFailure], None]] = []


@dataclass(frozen=True)
class ThreadFailure:
    """An exception that ended a thread's work. `error` is its class and message, with secrets redacted."""

    thread: str
    error: str
    is_restarted: bool

    def __str__(self) -> str:
        after = "it was started again" if self.is_restarted else "it is not started again"
        return f"thread '{self.thread}' failed with {self.error}; {after}"


def subscribe(listener: Callable[[ThreadFailure], None]) -> None:
    """Call a listener for each later failure in this process, in the thread that failed."""
    with _lock:
        _listeners.append(listener)


def unsubscribe(listener: Callable[[ThreadFailure], None]) -> None:
    """Stop calling that listener."""
    with _lock:
        _listeners.remove(listener)


class BackgroundThread:
    """A daemon thread that runs `work` until it returns. If `work` raises, the failure is reported and it runs again.

    The item in progress at a failure is lost, so `work` should take one item at a time from a queue.
    """

    def __init__(self, name: str, work: Callable[[], None], *, restarts: int = RESTARTS) -> None:
        self.name = name
        self._work = work
        self._failed_at: deque[float] = deque(maxlen=restarts + 1)
        self._restarts = restarts
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end, at most `timeout` seconds. Returns at once if called in the thread itself."""
        if not self.is_current():
            self._thread.join(timeout)

    def is_current(self) -> bool:
        """Return whether the caller runs in this thread."""
        return self._thread is threading.current_thread()

    def is_alive(self) -> bool:
        """Return whether the thread has started and not ended."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while True:
            try:
                self._work()
            except BaseException as error:  # noqa: BLE001 - unreported, it would only be printed to stderr
                is_restarted = self._may_restart()
                _report(ThreadFailure(self.name, describe(error), is_restarted))
                if not is_restarted:
                    return
            else:
                return

    def _may_restart(self) -> bool:
        now = time.monotonic()
        self._failed_at.append(now)
        return len(self._failed_at) <= self._restarts or now - self._failed_at[0] > WITHIN


def describe(error: BaseException) -> str:
    """Return the class of an exception and its message in one line, with secrets redacted."""
    message = " ".join(redact(str(error)).split())
    short_message = message if len(message) <= _MAX_CHARACTERS else message[:_MAX_CHARACTERS] + "…"
    return f"{type(error).__name__}: {short_message}" if short_message else type(error).__name__


def _report(failure: ThreadFailure) -> None:
    with _lock:
        listeners = list(_listeners)
    if not listeners:
        _log.error("%s", failure)
    for listener in listeners:
        listener(failure)
