"""Let the kernel end a child process when its parent ends, in whatever way."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

# From prctl(2): sets the signal that the kernel sends to a process when the thread that started it ends.
_PR_SET_PDEATHSIG = 1


def make_parent_death_hook(number: signal.Signals) -> Callable[[], None] | None:
    """Return a function for a child to run before exec, to get `number` when its parent ends. None if unsupported.

    Call it from a thread that lives as long as the child should, because the kernel watches the thread.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def watch() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            os._exit(1)  # the parent ended between fork and prctl, so no signal would come

    return watch
