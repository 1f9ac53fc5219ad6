"""A folder for one run that only this user can read, removed at the end or by the next run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "millstream-"


def private_folder() -> Path:
    """Make this process's folder in the system's temporary folder, and sweep those of dead ones.

    Has `local` (spills, state, unpacked libraries) and `warehouse` inside, mode 0700.
    """
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    (folder / "local").mkdir()
    # Held as long as this process lives: the system lets go of it however the process ends. Python's
    # descriptors are not inherited by a program that is started, so the JVM does not hold it.
    owner = os.open(folder / "claim", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(owner, fcntl.LOCK_EX)
    # Named when it is held: a sweep by another process at this moment finds no owner, and passes on.
    (folder / "claim").rename(folder / "owner")
    return folder


def _sweep() -> None:
    """Remove folders whose process ended without removing them (a kill -9)."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            owner = os.open(folder / "owner", os.O_RDWR)
            try:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(owner)
