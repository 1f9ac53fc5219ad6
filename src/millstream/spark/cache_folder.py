"""Locate the user's cache for downloaded or generated files: jars, the Java shim, class-data archives."""

from __future__ import annotations

import os
from pathlib import Path

from millstream.diagnostics.failure import NotReady


def cache_home() -> Path:
    """Return MILLSTREAM_HOME, else XDG_CACHE_HOME/millstream, else ~/.cache/millstream. Does not create it."""
    custom = os.environ.get("MILLSTREAM_HOME")
    if custom:
        return Path(custom).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "millstream"


def create_folder(name: str) -> Path:
    """Create a folder in the user's cache with mode 0700 and return it. Raises NotReady if it cannot be written."""
    path = cache_home() / name
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(
            f"the folder {path} cannot be created: {error.strerror or error}",
            "set MILLSTREAM_HOME to a folder that can be written",
        ) from error
    if not os.access(path, os.W_OK):
        raise NotReady(
            f"the folder {path} cannot be written", "set MILLSTREAM_HOME to a folder that can be written"
        )
    return path
