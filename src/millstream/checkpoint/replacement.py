"""Put a prepared checkpoint in the place of another one. A kill at any point leaves the old one or the new one whole.

A folder with files cannot be replaced in one step, so a journal next to it names the two renames before the first:

    .sums.prepared      the new checkpoint, whole and on the disk
    .sums.replace.json  written: from here on the new checkpoint counts
    sums                renamed to its backup, then .sums.prepared renamed to sums

`finish_replacement` makes the renames that a killed process has left. Each lock of a checkpoint calls it first.
"""

from __future__ import annotations

import json
import shutil
from itertools import count
from typing import TYPE_CHECKING

from millstream.checkpoint.atomic_file import flush_path, write_durably
from millstream.checkpoint.remote.path import RemotePath

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.checkpoint.remote.path import CheckpointPath

_JOURNAL = ".replace.json"


def prepare_folder(folder: Path) -> Path:
    """Return the path at which the successor of a checkpoint is built. Deletes one that was never used."""
    prepared = folder.with_name(f".{folder.name}.prepared")
    if prepared.exists():
        shutil.rmtree(prepared)
    return prepared


def replace_checkpoint(folder: Path, prepared: Path, backup: Path) -> None:
    """Put `prepared` in the place of a checkpoint, which is kept as `backup`. The caller has its lock."""
    flush_folder(prepared)
    write_durably(_journal(folder), json.dumps({"prepared": prepared.name, "backup": backup.name}))
    finish_replacement(folder)


def finish_replacement(folder: CheckpointPath) -> None:
    """Finish the replacement of a checkpoint, if its journal was written. Two processes may do so at once.

    Only checkpoints on this machine are replaced.
    """
    if isinstance(folder, RemotePath):
        return
    journal = _journal(folder)
    try:
        names = json.loads(journal.read_text())
    except FileNotFoundError:
        return
    prepared, backup = folder.with_name(names["prepared"]), folder.with_name(names["backup"])
    try:
        if prepared.exists() and not backup.exists():
            folder.rename(backup)
        if prepared.exists():
            prepared.rename(folder)
    except OSError:
        # The other process was faster if nothing is left to do.
        if prepared.exists():
            raise
    flush_path(folder.parent)
    journal.unlink(missing_ok=True)


def finish_replacements(parent: CheckpointPath) -> None:
    """Finish the replacements of all checkpoints in a folder of this machine."""
    if isinstance(parent, RemotePath):
        return
    for journal in parent.glob(f".*{_JOURNAL}"):
        finish_replacement(parent / journal.name.removeprefix(".").removesuffix(_JOURNAL))


def name_backup(folder: Path, reason: str, batch: int | None) -> Path:
    """Return the path at which a replaced checkpoint is kept: `.sums.before-rewind-1-at-batch-7`."""
    at_batch = "" if batch is None else f"-at-batch-{batch}"
    # A backup before the newest may have been deleted, so that the next number is taken.
    for number in count(len(list_backups(folder)) + 1):
        backup = folder.with_name(f".{folder.name}.before-{reason}-{number}{at_batch}")
        if not backup.exists():
            break
    return backup


def list_backups(folder: CheckpointPath) -> list[CheckpointPath]:
    """Return the checkpoints that were replaced by others, oldest first."""
    backups = folder.parent.glob(f".{folder.name}.before-*")
    return sorted(backups, key=lambda path: (path.stat().st_mtime, path.name))


def flush_folder(folder: Path) -> None:
    """Write all files of a folder to the disk."""
    for path in (*folder.rglob("*"), folder):
        flush_path(path)


def _journal(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}{_JOURNAL}")
