"""Create a folder for one run that only this user can read, removed at the end or by the next run."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "millstream-"


def create_private_folder() -> Path:
    """Create this process's folder in the system's temporary folder, and remove those of dead processes.

    It contains `local` (spills, state, unpacked libraries) and `warehouse`, with mode 0700.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    (folder / "local").mkdir()
    # The lock lasts as long as this process: the system releases it however the process ends. Programs that are
    # started do not inherit Python's descriptors, so the JVM does not have the lock.
    owner = os.open(folder / "claim", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(owner, fcntl.LOCK_EX)
    # Renamed only once it is locked. A sweep by another process before that finds no owner and skips the folder.
    (folder / "claim").rename(folder / "owner")
    # systemd removes files of /tmp that were not used for ten days, but not from a folder that somebody has locked.
    fcntl.flock(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
    return folder


def _remove_abandoned() -> None:
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
