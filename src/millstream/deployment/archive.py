"""Write files into a compressed tar archive whose bytes depend on nothing but their names and contents."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# 1980-01-01, the earliest time that a zip file can store, for whoever repacks the archive.
_TIME = 315_532_800
# Jars, most of the archive, are compressed already.
_LEVEL = 6
_MODE = 0o644


def write_archive(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a `.tar.gz` with these contents, by name inside the archive, and replace an existing one when complete.

    Equal contents give equal bytes with the same version of zlib. Owner, mode and time of a file are fixed. Raises
    `OSError` if the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with (
            draft.open("wb") as raw,
            # The name of the file and the time would be in the header.
            gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in sorted(contents):
                archive.addfile(_describe(name, contents[name]), io.BytesIO(contents[name]))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def is_archive(path: Path) -> bool:
    """Return whether `write_archive` has written a file, even in part."""
    try:
        with tarfile.open(path, "r|gz") as archive:
            first = archive.next()
    except (OSError, EOFError, tarfile.TarError, zlib.error):
        return False
    return first is not None and (first.mtime, first.mode, first.uname) == (_TIME, _MODE, "")


def _describe(name: str, content: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(content), _TIME, _MODE
    return info
