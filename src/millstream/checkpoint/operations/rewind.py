"""Rewind a checkpoint to an earlier batch, from which it continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.integrity.state_stores import check_state_stores, delete_later_versions
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.operations.transfer import copy_files
from millstream.checkpoint.remote.path import require_local
from millstream.checkpoint.replacement import name_backup, prepare_folder, replace_checkpoint
from millstream.checkpoint.rewinds import add_rewind
from millstream.diagnostics.failure import CheckpointError, InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.checkpoint.remote.path import CheckpointPath


def rewind_checkpoint(folder: CheckpointPath, to_batch: int) -> Path:
    """Make `to_batch` the newest batch of a checkpoint. Returns the checkpoint as it was.

    A kill at any point leaves the checkpoint as it was or the rewound one. Raises `CheckpointError` if a run has the
    checkpoint, or if its state of that batch is gone.
    """
    folder = require_local(folder, "a rewind")
    checkpoint = Checkpoint(folder)
    with CheckpointLock(folder, f"rewind to batch {to_batch}"):
        committed, planned = checkpoint.committed(), checkpoint.planned()
        if committed is None or planned is None or to_batch >= planned:
            newest = "none" if planned is None else planned
            raise InvalidInput(
                f"batch {to_batch} is not before the newest batch of {folder} ({newest})",
                "name an earlier batch; 'millstream checkpoint show' lists them",
            )
        for log in ("offsets", "commits"):
            if not (folder / log / str(to_batch)).exists():
                raise CheckpointError(
                    f"{folder} no longer has the file {log}/{to_batch}, because Spark keeps only the last 100 "
                    f"batches",
                    "name a later batch; 'millstream checkpoint show' lists them",
                )
        offsets = checkpoint.offsets(to_batch)
        assert offsets is not None, "its file was looked for just before"
        # Batch N leaves version N + 1 of the state.
        for damage in check_state_stores(folder, to_batch + 1, offsets.state_partitions):
            raise CheckpointError(
                f"the state of batch {to_batch} is gone: {damage.what}", "name a later batch"
            )
        prepared, backup = prepare_folder(folder), name_backup(folder, "rewind", planned)
        copy_files(folder, prepared, link=True)
        for batch in range(planned, to_batch, -1):
            for log in ("commits", "offsets"):
                (prepared / log / str(batch)).unlink(missing_ok=True)
                (prepared / log / f".{batch}.crc").unlink(missing_ok=True)
        delete_later_versions(prepared, to_batch + 1)
        add_rewind(prepared)
        replace_checkpoint(folder, prepared, backup)
    return backup
