"""Delete partial files that a kill left in a checkpoint's logs. Before the first batch they block every start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.remote.path import list_folder

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath

# The logs that must be empty, hidden files included, as long as no batch was planned.
_LOGS = ("offsets", "commits")


def delete_partial_files(folder: CheckpointPath) -> list[CheckpointPath]:
    """Delete partial log files in a checkpoint that has planned no batch, and return their paths.

    Spark writes `offsets/0` as `.0.<uuid>.tmp` with a checksum file, and renames it. A process killed in between
    leaves the partial file. Spark never reads it, yet rejects the folder with
    STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY. The batch was not planned, so nothing is lost. Once a batch is planned,
    Spark does not check, and nothing is done. The caller has the folder's lock. Raises OSError if the folder cannot
    be written.
    """
    if Checkpoint(folder).planned() is not None:
        return []
    partial_files = [
        file
        for log in _LOGS
        if (folder / log).is_dir()
        for file in list_folder(folder / log)
        if file.name.startswith(".") and file.suffix in (".tmp", ".crc")
    ]
    for file in partial_files:
        file.unlink()
    return partial_files
