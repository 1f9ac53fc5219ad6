"""Start a guardian, and hold the pipe that an attached one watches."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.state import Home

# The writing end of the pipe of each attached stack of this process. Nobody writes: the system closes it
# when this process ends, and that is the message.
_LEASES: dict[Path, int] = {}
_SECONDS = 15.0


def spawn(home: Home, *, attached: bool) -> None:
    """Start the guardian of a stack and wait until it has written its state; NotReady if it does not."""
    reading, writing = os.pipe()
    log = home.log("guardian")
    with log.open("ab") as stream:
        # -P: a module in the working folder must not stand in for one of Python's own.
        starter = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "millstream.devstack.guardian",
                str(home.project),
                *(["--attached"] if attached else []),
            ],
            stdin=reading if attached else subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd=home.path,
            env=_environment(),
            start_new_session=True,
        )
    os.close(reading)
    if attached:
        release(home.path)
        _LEASES[home.path] = writing
    else:
        os.close(writing)
    starter.wait()
    stop = time.monotonic() + _SECONDS
    while home.state() is None:
        if time.monotonic() > stop:
            raise NotReady("the stack's guardian does not start", f"read its log: {log}")
        # The guardian tells it is there by a file.
        time.sleep(0.02)


def release(path: Path) -> None:
    """Let go of an attached stack, which ends then."""
    writing = _LEASES.pop(path, None)
    if writing is not None:
        os.close(writing)


def _environment() -> dict[str, str]:
    """What the servers get: PG… variables are for clients, and would change the server."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PG")}
