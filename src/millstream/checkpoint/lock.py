"""One run per checkpoint: a lock that names its owner and is gone when its owner is."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


class CheckpointLock:
    """Holds a checkpoint folder for one process. A kernel lock: `kill -9` of the owner frees it."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.file = folder / "_millstream" / "lock"
        self.owner = owner
        self._held: IO[str] | None = None

    def take(self) -> None:
        """Take the lock; raises `CannotGoOn` with the name of the owner when another run holds it."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        handle = self.file.open("a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            handle.seek(0)
            said = handle.read()
            handle.close()
            raise CannotGoOn(
                f"checkpoint {self.file.parent.parent} is held by {_who(said)}",
                "stop that run first; two runs on one checkpoint would each write its batches",
            ) from held
        handle.truncate(0)
        json.dump(
            {
                "owner": self.owner,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
            },
            handle,
        )
        handle.flush()
        self._held = handle

    def release(self) -> None:
        """Let go; harmless when it is not held."""
        if self._held is not None:
            self._held.truncate(0)
            self._held.close()
            self._held = None

    def __enter__(self) -> CheckpointLock:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def taken_over(folder: Path) -> str | None:
    """Who holds the lock of a checkpoint instead of this process, in words; None where nobody else says so.

    A lock file that is removed while its owner runs, or stands still, can be made again by another run. The owner
    keeps the lock of a file that nobody finds any more, and must not start its query again.
    """
    try:
        said = (folder / "_millstream" / "lock").read_text()
        owner = json.loads(said)
        ours = (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if ours else _who(said)


def _who(said: str) -> str:
    """The owner in words, from what it wrote into the lock file."""
    try:
        owner = json.loads(said)
        return f"'{owner['owner']}' (process {owner['pid']} on {owner['host']}, since {owner['since']})"
    except (ValueError, KeyError, TypeError):
        return "another run that has just begun"
