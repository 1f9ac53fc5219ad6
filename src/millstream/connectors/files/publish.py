"""The steps that bring a batch into a folder: commit its manifest, move its files, clear what is left.

    stage        rows are written below _millstream/staging, where no reader looks
    commit       the manifest appears, whole; from here on the batch is in
    roll forward files move to their places, one rename each
    clear        the staging folder goes

A crash before the commit leaves rows nobody sees; one after it leaves moves that the next start finishes.
Two drivers that run the same batch each stage in a folder of their own; one manifest can be created, and
the other driver finishes that one's moves instead of its own.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from millstream.connectors.files.manifest import STAGING, Manifest, batches, folder, plan, read, tag
from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from millstream.connectors.files.place import Found, Place
    from millstream.connectors.remembered import Note
    from millstream.connectors.sink import SinkIdentity


def staging(identity: SinkIdentity, batch: int) -> str:
    """A folder for one attempt at a batch, which no other attempt uses."""
    return f"{STAGING}/{tag(identity)}-{batch}-{uuid.uuid4().hex[:8]}"


def commit(
    place: Place, identity: SinkIdentity, batch: int, home: str, found: list[Found], note: Note
) -> Manifest:
    """Create the manifest of staged files. Gives the one that holds, which may be another attempt's."""
    manifest = plan(identity, batch, home, found, note)
    for file in manifest.files:
        place.settle(f"{home}/{file.staged}")
    if place.create(f"{folder(identity)}/{batch}.json", manifest.text()):
        return manifest
    held = read(place, identity, batch)
    if held is None:
        raise CannotGoOn(
            f"the manifest of batch {batch} vanished while it was read",
            "see who else removes files below _millstream",
        )
    return held


def whole(place: Place, manifest: Manifest) -> bool:
    """Have all moves of a committed batch been made? Its staging folder goes after the last."""
    return not place.exists(manifest.staging)


def roll_forward(place: Place, manifest: Manifest) -> None:
    """Make the moves that are missing. Raises `CannotGoOn` when a file of the batch is gone."""
    if whole(place, manifest):
        return
    for file in manifest.files:
        staged = f"{manifest.staging}/{file.staged}"
        if place.exists(staged):
            _move(place, staged, file.name)
        elif not place.exists(file.name):
            raise CannotGoOn(
                f"file {file.name} of batch {manifest.batch} is neither staged nor in its place",
                "restore it, or start the query afresh in another folder",
            )
    for parent in sorted({file.name.rpartition("/")[0] for file in manifest.files}):
        place.settle(parent)
    place.remove(manifest.staging)


def _move(place: Place, staged: str, name: str) -> None:
    """Move a file, unless another driver at the same batch is quicker."""
    try:
        place.move(staged, name)
    except OSError:
        if not place.exists(name):
            raise


def clear(place: Place, identity: SinkIdentity, upto: int) -> None:
    """Drop what attempts at committed batches left in staging: those up to and with batch `upto`.

    An attempt at a batch that is not committed is let be: another driver may be at work in it, and would
    take the files that are still there for all there are.
    """
    for name in place.names(STAGING):
        owner, _, rest = name.partition("-")
        batch = rest.partition("-")[0]
        if owner == tag(identity) and batch.isdigit() and int(batch) <= upto:
            place.remove(f"{STAGING}/{name}")


def recover(place: Place, identity: SinkIdentity) -> list[int]:
    """Finish the moves of committed batches. Gives the batches whose manifests are kept, oldest first."""
    kept = batches(place, identity)
    waiting = {name.split("-")[1] for name in place.names(STAGING) if name.startswith(f"{tag(identity)}-")}
    for batch in kept:
        if str(batch) in waiting:
            manifest = read(place, identity, batch)
            if manifest is not None:
                roll_forward(place, manifest)
    if kept:
        clear(place, identity, kept[-1])
    return kept
