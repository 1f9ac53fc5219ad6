"""A place of its own for a copy of a pipeline, where nothing of the user's is touched, and records to feed it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from millstream.spec.location import Location


@dataclass(frozen=True)
class Place:
    """Where a copy lives: files below `folder`, topics and schemas under names that begin with `prefix`.

    The same original always moves to the same place, so that a query that reads what another wrote still does.
    """

    folder: Path
    prefix: str

    def path(self, original: str) -> Location:
        """A folder for what was at `original`, a path or the name of a table."""
        last = re.sub(r"[^A-Za-z0-9_-]", "_", PurePosixPath(original).name) or "folder"
        mark = hashlib.sha256(original.encode()).hexdigest()[:6]
        return Location(self.folder / "lake" / f"{last}-{mark}")

    def name(self, original: str) -> str:
        """A topic for what was in topic `original`."""
        return f"{self.prefix}.{original}"


@dataclass(frozen=True)
class Fed:
    """One record for a source: a message with its key, or a line of a file. `topic` where there are several."""

    value: bytes
    key: bytes | None = None
    topic: str = ""
