"""A sandbox for a copy of a pipeline, isolated from user data, and records to feed it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from millstream.spec.location import Location


@dataclass(frozen=True)
class Sandbox:
    """Location of a copy: files below `folder`, and topics and schemas with names that begin with `prefix`.

    The same original always maps to the same place, so that a query still reads what another wrote.
    """

    folder: Path
    prefix: str

    def path(self, original: str) -> Location:
        """Return a folder for an original path or table name."""
        base_name = re.sub(r"[^A-Za-z0-9_-]", "_", PurePosixPath(original).name) or "folder"
        digest = hashlib.sha256(original.encode()).hexdigest()[:6]
        return Location(self.folder / "lake" / f"{base_name}-{digest}")

    def name(self, original: str) -> str:
        """Return a topic for an original topic."""
        return f"{self.prefix}.{original}"


@dataclass(frozen=True)
class InputRecord:
    """One record for a source: a message with its key, or a line of a file. `topic` if there are several."""

    value: bytes
    key: bytes | None = None
    topic: str = ""
