"""Steps that publish a batch in a folder: commit its manifest, move its files, delete the staging folder.

    stage        rows are written below _millstream/staging, where readers do not look
    commit       the manifest appears as a whole; from here on the batch is committed
    roll forward files move to their places, one rename each
    clear        the staging folder is deleted

A crash before the commit leaves rows that no reader sees; one after it leaves moves that the next start finishes.
Two drivers that run the same batch use separate staging folders. Only one of them can create the manifest, and
the other driver finishes the moves of that manifest instead of its own.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from millstream.connectors.files.manifest import (
    STAGING,
    Manifest,
    first_kept_batch,
    list_batches,
    manifest_path,
    plan_manifest,
    read_manifest,
    writer_tag,
)
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from millstream.connectors.api.batch_ledger import BatchMetadata
    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.files.sink_folder import FileEntry, SinkFolder


def staging_folder(identity: SinkIdentity, batch: int) -> str:
    """Return a unique staging folder for one attempt at a batch."""
    return f"{STAGING}/{writer_tag(identity)}-{batch}-{uuid.uuid4().hex[:8]}"


def commit_manifest(
    place: SinkFolder,
    identity: SinkIdentity,
    batch: int,
    home: str,
    files: list[FileEntry],
    note: BatchMetadata,
) -> Manifest:
    """Create the manifest of staged files; return the committed one, which may be another attempt's."""
    manifest = plan_manifest(identity, batch, home, files, note)
    try:
        for file in manifest.files:
            place.settle(f"{home}/{file.staged}")
    except FileNotFoundError:
        # A driver that commits the batch deletes the files of other attempts.
        manifest_there = read_manifest(place, identity, batch)
        if manifest_there is None:
            raise
        return manifest_there
    if place.create(manifest_path(identity, batch), manifest.text()):
        return manifest
    manifest_there = read_manifest(place, identity, batch)
    if manifest_there is None:
        raise CheckpointError(
            f"the manifest of batch {batch} disappeared while it was read",
            "find out which program deletes files below _millstream, and stop it",
        )
    return manifest_there


def withdraw_manifest(place: SinkFolder, identity: SinkIdentity, manifest: Manifest) -> None:
    """Delete a manifest that must not exist, and its staged files."""
    place.remove(manifest_path(identity, manifest.batch))
    place.remove(manifest.staging)


def is_complete(place: SinkFolder, manifest: Manifest) -> bool:
    """Return whether all files of a committed batch are in place.

    Its staging folder is deleted after the last move.
    """
    return not place.exists(manifest.staging)


def roll_forward(place: SinkFolder, manifest: Manifest) -> None:
    """Make the missing moves. Raises `CheckpointError` if a file of the batch no longer exists."""
    if is_complete(place, manifest):
        return
    for file in manifest.files:
        staged = f"{manifest.staging}/{file.staged}"
        if place.exists(staged):
            _move(place, staged, file.name)
        elif not place.exists(file.name):
            raise CheckpointError(
                f"file {file.name} of batch {manifest.batch} is neither staged nor in its place",
                "restore it, or start the query with an empty checkpoint and another folder",
            )
    for parent in sorted({file.name.rpartition("/")[0] for file in manifest.files}):
        place.settle(parent)
    place.remove(manifest.staging)


def _move(place: SinkFolder, staged: str, name: str) -> None:
    """Move a file, unless another driver at the same batch has moved it."""
    try:
        place.move(staged, name)
    except OSError:
        if not place.exists(name):
            raise


def clear_staging(place: SinkFolder, identity: SinkIdentity, upto: int) -> None:
    """Delete the staging folders of committed batches, up to and including batch `upto`.

    An attempt at an uncommitted batch is kept: another driver may be working on it, and would take the remaining
    files for all files.
    """
    for name in place.names(STAGING):
        owner, _, rest = name.partition("-")
        batch = rest.partition("-")[0]
        if owner == writer_tag(identity) and batch.isdigit() and int(batch) <= upto:
            place.remove(f"{STAGING}/{name}")


def finish_moves(place: SinkFolder, identity: SinkIdentity) -> list[int]:
    """Finish the moves of committed batches; return the batches with a manifest, oldest first."""
    committed, forgotten = list_batches(place, identity), first_kept_batch(place, identity)
    staged = {
        name.split("-")[1] for name in place.names(STAGING) if name.startswith(f"{writer_tag(identity)}-")
    }
    for batch in [number for number in committed if number < forgotten]:
        # Already dropped, but a crash kept the file; or created again by a run that had been stopped, and died.
        place.remove(manifest_path(identity, batch))
    committed = [number for number in committed if number >= forgotten]
    for batch in committed:
        if str(batch) in staged:
            manifest = read_manifest(place, identity, batch)
            if manifest is not None:
                roll_forward(place, manifest)
    if committed:
        clear_staging(place, identity, committed[-1])
    return committed
