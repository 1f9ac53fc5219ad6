"""What a kill leaves of a file that Spark was writing; before the first batch it keeps a query from ever starting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

# The logs that Spark wants empty, hidden files included, where no batch was planned.
_LOGS = ("offsets", "commits")


def sweep(folder: Path) -> list[Path]:
    """Delete the halves of log files in a checkpoint that has planned no batch, and give their places.

    Spark writes `offsets/0` as `.0.<uuid>.tmp` with a sum beside it, and renames it. A process killed in between
    leaves the half; Spark never reads it, and yet refuses the folder with STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY.
    The batch was not planned, so nothing is lost. Once a batch is planned Spark does not look, and nothing is done.
    The caller holds the folder's lock. Raises OSError when the folder cannot be written.
    """
    if Checkpoint(folder).planned() is not None:
        return []
    halves = [
        file
        for log in _LOGS
        if (folder / log).is_dir()
        for file in sorted((folder / log).iterdir())
        if file.name.startswith(".") and file.suffix in (".tmp", ".crc")
    ]
    for file in halves:
        file.unlink()
    return halves
