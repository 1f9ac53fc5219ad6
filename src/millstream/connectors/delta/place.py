"""Asks the file system whether a table's folder can be written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from millstream.spec.location import Location


DELETIONS = "_deletions"
"""The folder inside a table's own in which `cdc` keeps deletions: a Delta table that no reader of the other sees."""


def writable(place: Location) -> None:
    """Raises `NotReady` when a local folder, or the nearest one above that exists, cannot be written.

    A URI of another file system is not asked: only Spark holds its credentials.
    """
    folder = place.local
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise NotReady(f"{folder} is a file, and a Delta table is a folder", "change the path")
    others = [one for one in folder.iterdir() if one.name != DELETIONS] if folder.is_dir() else []
    if others and not (folder / "_delta_log").exists():
        raise NotReady(
            f"{folder} holds files and is no Delta table", "write to an empty folder or another path"
        )
    held = next(above for above in (folder.absolute(), *folder.absolute().parents) if above.exists())
    if not held.is_dir() or not os.access(held, os.W_OK | os.X_OK):
        raise NotReady(
            f"{held} cannot be written, and Delta table {folder} is to be there",
            "grant the right, or change the path",
        )
