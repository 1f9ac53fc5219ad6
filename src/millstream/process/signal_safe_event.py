"""An event that a signal handler can set."""

from __future__ import annotations

import contextlib
import threading


class SignalSafeEvent:
    """A `threading.Event` that a handler of a signal can set while the main thread waits for it.

    Python runs handlers in the main thread, between any two instructions. `threading.Event.set` takes a lock that
    `wait` takes as well, so that a handler which interrupts `wait` while it has the lock waits for itself forever.
    Here `set` takes no lock, and releases the one that `wait` waits for.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._until_set = threading.Lock()
        self._until_set.acquire()

    def is_set(self) -> bool:
        """Whether the event was set. It stays set."""
        return self._is_set

    def set(self) -> None:
        """Set the event, and wake the threads that wait."""
        if not self._is_set:
            self._is_set = True
            self._release()

    def wait(self, timeout: float) -> bool:
        """Wait for at most `timeout` seconds, and return whether the event is set."""
        if not self._is_set and self._until_set.acquire(timeout=timeout):
            self._release()
        return self._is_set

    def _release(self) -> None:
        # Two calls of `set` at the same time, or a thread that was woken, may already have released it.
        with contextlib.suppress(RuntimeError):
            self._until_set.release()
