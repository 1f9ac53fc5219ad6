"""Create folders for rows, state and messages that are closed to every other user of the machine."""

from __future__ import annotations

import contextlib
import stat
from typing import TYPE_CHECKING

from millstream.checkpoint.remote.path import RemotePath

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.checkpoint.remote.path import CheckpointPath

PROJECT = ".millstream"
"""The folder of a project in which Millstream stores checkpoints, logs, runs and the local stack."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(folder: CheckpointPath) -> None:
    """Create a folder that only its owner may open, or close an existing one, and each `.millstream` above it.

    Files inside need no mode, whichever process writes them. Spark's JVM sets modes by the user's umask, which must
    not change because others read the tables. Raises `OSError` if the folder cannot be created. The mode of another
    owner's folder stays as it is. On a remote file system an existing folder stays as it is.
    """
    if isinstance(folder, RemotePath):
        folder.mkdir(mode=stat.S_IRWXU)
        return
    folder = folder.absolute()
    for path in (*(parent for parent in reversed(folder.parents) if parent.name == PROJECT), folder):
        path.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            with contextlib.suppress(PermissionError):
                path.chmod(mode & ~_OTHERS)


def is_private(folder: Path) -> bool:
    """Return whether a folder is inside a `.millstream`."""
    return PROJECT in folder.absolute().parts
