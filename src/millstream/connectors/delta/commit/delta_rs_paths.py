"""Paths of local tables that delta-rs reads otherwise than Spark."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.spec.location import Location

# delta-rs decodes %20 in a path, so that it reads the log of another folder, and takes \\ for a separator.
_MISREAD = r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]"
# Its appends and deletions panic at these.
_UNWRITABLE = rf"{_MISREAD}|[\[\]|^]"


def is_misread(folder: Path, *, appends: bool = False) -> bool:
    """Return whether delta-rs would open another folder than this one, or fail on its path. Spark opens it.

    With `appends`, whether it would fail to append to the table or to delete from it; merges are not concerned.
    """
    return _find_misread(folder, appends=appends) is not None


def require_delta_rs(place: Location, *, appends: bool = False) -> None:
    """Raise `NotReady` if a local table can only be opened with Spark, because of its path."""
    folder = place.local
    if folder is not None and (misread := _find_misread(folder, appends=appends)):
        raise NotReady(
            f"Delta table {folder} cannot be {'changed' if appends else 'read'} without Spark, because its path "
            f"contains '{misread[0]}'",
            f"move it to a path without {misread[0]}, and change the path in the spec",
        )


def _find_misread(folder: Path, *, appends: bool) -> re.Match[str] | None:
    return re.search(_UNWRITABLE if appends else _MISREAD, str(folder.absolute()))
