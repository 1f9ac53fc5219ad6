"""The number of times that a checkpoint was rewound, after which its batches have other records under old numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checkpoint.remote.object_lease import OWN

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath

_NAME = "rewinds"


def count_rewinds(checkpoint: CheckpointPath | None) -> int:
    """Return how often a checkpoint was rewound. A remote one cannot be."""
    if not isinstance(checkpoint, Path):
        return 0
    try:
        return int((checkpoint / OWN / _NAME).read_text())
    except (FileNotFoundError, ValueError):
        return 0


def add_rewind(checkpoint: Path) -> None:
    """Count one more. The file may be a link to that of another checkpoint."""
    file, count = checkpoint / OWN / _NAME, count_rewinds(checkpoint)
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_text(str(count + 1))


def letters_id(query_id: str, checkpoint: CheckpointPath | None) -> str:
    """Return the id under which the dead letters of a checkpoint are stored: another one after each rewind.

    The store of the dead letters is not rewound. It would take those of a new batch for those of the old batch with
    its number, and discard them.
    """
    count = count_rewinds(checkpoint)
    return f"{query_id}+{count}" if count else query_id
