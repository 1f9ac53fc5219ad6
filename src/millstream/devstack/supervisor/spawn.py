"""Start a guardian, and keep the pipe open that an attached guardian watches."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.devstack.supervisor.state import Home

# The write end of the pipe of each attached stack of this process. Nothing is written: the system closes it
# when this process ends, which tells the guardian to stop.
_PIPES: dict[Path, int] = {}
_START_TIMEOUT = 15.0


def spawn_guardian(home: Home, *, attached: bool) -> None:
    """Start the guardian of a stack and wait until it has written its state. Raises NotReady if it does not."""
    reading, writing = os.pipe()
    log = home.log("guardian")
    with log.open("ab") as stream:
        # -P: a module in the working folder must not shadow a module of the standard library.
        starter = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "millstream.devstack.supervisor.supervisor",
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
        release_guardian(home.path)
        _PIPES[home.path] = writing
    else:
        os.close(writing)
    starter.wait()
    stop = time.monotonic() + _START_TIMEOUT
    while home.state() is None:
        if time.monotonic() > stop:
            raise NotReady(
                "the process that supervises the local stack does not start", f"read its log: {log}"
            )
        # The guardian shows by its state file that it runs.
        time.sleep(0.02)


def release_guardian(path: Path) -> None:
    """Close the pipe of an attached stack, which then stops."""
    writing = _PIPES.pop(path, None)
    if writing is not None:
        os.close(writing)


def _environment() -> dict[str, str]:
    """Return the servers' environment, without PG… variables, which are for clients and would change the server."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PG")}
