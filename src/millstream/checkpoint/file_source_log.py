"""Read which files each batch of a file source read, from the source's own log in the checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath

COMPACT = ".compact"
# The entry number of files that another checkpoint has read. Spark then knows them, and no batch reads them.
READ_BEFORE = 1_000_000_000_000


def list_batch_files(folder: CheckpointPath, start: int, end: int) -> tuple[str, ...]:
    """Return the paths of the files of log entries after `start` up to `end`, in order.

    `folder` is `sources/<i>` of a checkpoint. Every tenth entry is compacted: it then also lists all files before it,
    each with the number of its own entry, and the entries before it may be deleted.
    """
    paths: dict[str, None] = {}
    for number in range(start + 1, end + 1):
        entries = _read_log_entries(_find_log_file(folder, number))
        paths |= dict.fromkeys(str(entry["path"]) for entry in entries if entry["batchId"] == number)
    return tuple(paths)


def list_read_files(folder: CheckpointPath, end: int) -> tuple[tuple[str, int], ...]:
    """Return the path and the time of change of every file up to log entry `end`.

    Includes files that were read before a checkpoint began at a position.
    """
    times: dict[str, int] = {}
    for number in range(end + 1):
        for entry in _read_log_entries(_find_log_file(folder, number)):
            if entry["batchId"] == number or (number == 0 and entry["batchId"] == READ_BEFORE):
                times[str(entry["path"])] = int(entry["timestamp"])
    return tuple(times.items())


def _find_log_file(folder: CheckpointPath, number: int) -> CheckpointPath:
    """Return the file that has a log entry."""
    entry = folder / str(number)
    file = entry if entry.exists() else folder / f"{number}{COMPACT}"
    return file if file.exists() else _find_compacted(folder, number)


def _find_compacted(folder: CheckpointPath, number: int) -> CheckpointPath:
    """Return the first compacted entry that includes a deleted one."""
    compacted = sorted(
        int(file.name.removesuffix(COMPACT))
        for file in folder.glob(f"*{COMPACT}")
        if file.name.removesuffix(COMPACT).isdigit() and int(file.name.removesuffix(COMPACT)) >= number
    )
    if not compacted:
        raise CheckpointError(
            f"{folder} does not record which files entry {number} of the log contains",
            "start again with an empty checkpoint folder",
        )
    return folder / f"{compacted[0]}{COMPACT}"


def _read_log_entries(file: CheckpointPath) -> list[dict[str, Any]]:
    """Return the files in one log file: a version line, then one JSON per line."""
    _, *lines = file.read_text().splitlines()
    return [json.loads(line) for line in lines if line.strip()]
