"""Replace a small file so that a crash or a power cut leaves the old one or the whole new one."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from millstream.checkpoint.remote.path import RemotePath

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.checkpoint.remote.path import CheckpointPath

# The answer of shared folders of VirtualBox and of some mounts by CIFS and 9p. They write the names by themselves.
_NOT_FOR_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


def write_durably(file: CheckpointPath, text: str) -> None:
    """Replace a file, readable by its owner only. It is on the disk when this returns. Raises `OSError`.

    The text is on the disk before the file gets its name, and the name before this returns. Otherwise a file system
    may keep the rename and lose the text, which leaves an empty file. On a remote file system, where the mode is that
    of its own settings, raises `CheckpointError` if another run has taken over the checkpoint.
    """
    if isinstance(file, RemotePath):
        file.write_text(text)
    else:
        _write_local(file, text)


def _write_local(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.name}.half")
    with os.fdopen(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)
    flush_path(file.parent)


def flush_path(path: Path) -> None:
    """Write a file, or the names in a folder if its file system supports that, to the disk. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS or not path.is_dir():
            raise
    finally:
        os.close(handle)
