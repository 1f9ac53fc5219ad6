"""Where Millstream keeps what it fetched or made for this user: jars, the Java shim, class-data archives."""

from __future__ import annotations

import os
from pathlib import Path

from millstream.diagnostics.failure import NotReady


def home() -> Path:
    """MILLSTREAM_HOME, else XDG_CACHE_HOME/millstream, else ~/.cache/millstream; not created here."""
    own = os.environ.get("MILLSTREAM_HOME")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "millstream"


def folder(name: str) -> Path:
    """A folder of that name in the user's cache, made with mode 0700; NotReady when it cannot be written."""
    path = home() / name
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as refused:
        raise NotReady(
            f"the folder {path} cannot be made: {refused.strerror or refused}",
            "set MILLSTREAM_HOME to a folder that can be written",
        ) from refused
    if not os.access(path, os.W_OK):
        raise NotReady(
            f"the folder {path} cannot be written", "set MILLSTREAM_HOME to a folder that can be written"
        )
    return path
