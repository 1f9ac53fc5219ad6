"""Read which files each batch of a file source read, from the source's own log in the checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path

COMPACT = ".compact"


def list_batch_files(folder: Path, start: int, end: int) -> tuple[str, ...]:
    """Return the paths of the files of log entries after `start` up to `end`, in order.

    `folder` is `sources/<i>` of a checkpoint. Every tenth entry is compacted: it then also lists all files before it,
    each with the number of its own entry, and the entries before it may be deleted.
    """
    paths: dict[str, None] = {}
    for number in range(start + 1, end + 1):
        entry = folder / str(number)
        file = entry if entry.exists() else folder / f"{number}{COMPACT}"
        if not file.exists():
            file = _find_compacted(folder, number)
        paths |= dict.fromkeys(path for path, batch in _read_log_file(file) if batch == number)
    return tuple(paths)


def _find_compacted(folder: Path, number: int) -> Path:
    """Return the first compacted entry that includes a deleted one."""
    compacted = sorted(
        int(file.name.removesuffix(COMPACT))
        for file in folder.glob(f"*{COMPACT}")
        if file.name.removesuffix(COMPACT).isdigit() and int(file.name.removesuffix(COMPACT)) >= number
    )
    if not compacted:
        raise CheckpointError(
            f"{folder} does not say which files entry {number} read",
            "start again with an empty checkpoint folder",
        )
    return folder / f"{compacted[0]}{COMPACT}"


def _read_log_file(file: Path) -> list[tuple[str, int]]:
    """Return the path and entry number of each file in one log file: a version line, then one JSON per line."""
    _, *lines = file.read_text().splitlines()
    entries = [json.loads(line) for line in lines if line.strip()]
    return [(str(log_entry["path"]), int(log_entry["batchId"])) for log_entry in entries]
