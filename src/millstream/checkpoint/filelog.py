"""Which files each batch of a file source read, from the source's own log in the checkpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from pathlib import Path

COMPACT = ".compact"


def files(folder: Path, start: int, end: int) -> tuple[str, ...]:
    """Paths of the files of log entries after `start` up to `end`, in order.

    `folder` is `sources/<i>` of a checkpoint. Every tenth entry is compacted: it then holds all files before
    it as well, each with the number of its own entry, and the entries before it may be gone.
    """
    found: dict[str, None] = {}
    for number in range(start + 1, end + 1):
        entry = folder / str(number)
        file = entry if entry.exists() else folder / f"{number}{COMPACT}"
        if not file.exists():
            file = _compacted_after(folder, number)
        found |= dict.fromkeys(path for path, batch in _read(file) if batch == number)
    return tuple(found)


def _compacted_after(folder: Path, number: int) -> Path:
    """The first compacted entry that has taken in a deleted one."""
    later = sorted(
        int(file.name.removesuffix(COMPACT))
        for file in folder.glob(f"*{COMPACT}")
        if file.name.removesuffix(COMPACT).isdigit() and int(file.name.removesuffix(COMPACT)) >= number
    )
    if not later:
        raise CannotGoOn(
            f"{folder} does not say which files entry {number} read",
            "start again with an empty checkpoint folder",
        )
    return folder / f"{later[0]}{COMPACT}"


def _read(file: Path) -> list[tuple[str, int]]:
    """Path and entry number of each file in one log file: a version line, then JSON a line."""
    _, *lines = file.read_text().splitlines()
    told = [json.loads(line) for line in lines if line.strip()]
    return [(str(one["path"]), int(one["batchId"])) for one in told]
