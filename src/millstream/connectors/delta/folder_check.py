"""Check whether a table's folder can be written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.connectors.delta.commit.commit_lock import LOCK_FILE, WRITING_LOCK_FILE
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from millstream.spec.location import Location

DELETIONS = "_deletions"
"""Folder inside a table's folder where `cdc` keeps deletions: a Delta table that readers of the other ignore."""


def require_writable(place: Location) -> None:
    """Raise `NotReady` if a local folder, or its nearest existing parent, cannot be written.

    A URI of another file system is not checked, because only Spark has its credentials.
    """
    folder = place.local
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise NotReady(f"{folder} is a file, but a Delta table is a folder", "change the path")
    own_names = (DELETIONS, LOCK_FILE, WRITING_LOCK_FILE)
    other_files = (
        [entry for entry in folder.iterdir() if entry.name not in own_names] if folder.is_dir() else []
    )
    if other_files and not (folder / "_delta_log").exists():
        raise NotReady(
            f"{folder} contains files but no Delta table", "write to an empty folder or another path"
        )
    existing = next(above for above in (folder.absolute(), *folder.absolute().parents) if above.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise NotReady(
            f"{existing} cannot be written, so Delta table {folder} cannot be created",
            "grant write permission, or change the path",
        )
