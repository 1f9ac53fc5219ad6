"""An event that a signal handler can set."""

from __future__ import annotations

import contextlib
import queue


class SignalSafeEvent:
    """A `threading.Event` that a handler of a signal can set while the main thread waits for it.

    Python runs handlers in the main thread, between any two instructions. `threading.Event.set` takes a lock that
    `wait` takes as well, so that a handler which interrupts `wait` while it has the lock waits for itself forever.
    `SimpleQueue.put` is documented to be safe there.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()

    def is_set(self) -> bool:
        """Whether the event was set. It stays set."""
        return self._is_set

    def set(self) -> None:
        """Set the event, and wake one thread that waits. Others notice it at the end of their timeout."""
        self._is_set = True
        self._wakeups.put(None)

    def wait(self, timeout: float) -> bool:
        """Wait for at most `timeout` seconds, and return whether the event is set."""
        if not self._is_set:
            with contextlib.suppress(queue.Empty):
                self._wakeups.get(timeout=timeout)
        return self._is_set
