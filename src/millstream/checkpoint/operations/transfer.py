"""Copy and move a checkpoint folder. The new folder appears at once and whole; the old one is deleted after that."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.checkpoint.atomic_file import flush_path
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.former_checkpoint import keep_place
from millstream.checkpoint.lock import CheckpointLock
from millstream.checkpoint.remote.path import require_local
from millstream.checkpoint.replacement import finish_replacement, flush_folder
from millstream.diagnostics.failure import CheckpointError, InvalidInput, NotReady

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath

# Of one process and one machine.
_LOCKS = ("lock", "jvm.lock")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
_PARTIAL = ".partial"
_MOVED = ".moved"


def copy_checkpoint(source: CheckpointPath, target: CheckpointPath) -> Path:
    """Copy a checkpoint to a folder that does not exist. Returns the new folder.

    The source is locked meanwhile. A copy that was killed leaves only a folder whose name ends with `.partial`, which
    the next copy replaces. Raises `CheckpointError` if a run has the source, `InvalidInput` if the target exists.
    """
    source, target = require_local(source, "a copy"), require_local(target, "a copy")
    _require(source, target)
    with CheckpointLock(source, f"copy to {target}"):
        keep_place(source, target)
        _copy_whole(source, target)
    return target


def move_checkpoint(source: CheckpointPath, target: CheckpointPath) -> Path:
    """Move a checkpoint to a folder that does not exist. Returns the new folder.

    On one file system the folder is renamed in one step. To another one it is copied whole first. Raises the
    exceptions of `copy_checkpoint`, and `CheckpointError` for state that names its files by their absolute path in
    another folder than the target.
    """
    source, target = require_local(source, "a move"), require_local(target, "a move")
    _require(source, target)
    if file := find_absolute_path(source, target):
        raise CheckpointError(
            f"the state in {source} refers to its files by their absolute path ({file}), as the state of "
            f"processors always does, so it works only in its original folder",
            "leave the checkpoint in that folder, move it back there, or give the query a new one",
        )
    with CheckpointLock(source, f"move to {target}"):
        keep_place(source, target)
        _make_parent(target)
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise NotReady(
                    f"{source} cannot be moved to {target}: {error.strerror}",
                    "name a folder that you may write to",
                ) from error
            _copy_whole(source, target)
            # A kill while files are deleted must not leave half a checkpoint under its name.
            moved = source.with_name(f".{source.name}{_MOVED}")
            shutil.rmtree(moved, ignore_errors=True)
            source.rename(moved)
            shutil.rmtree(moved)
    return target


def find_absolute_path(checkpoint: Path, target: Path | None = None) -> Path | None:
    """Return a file of the state that contains the absolute path of other files, or None.

    Paths in the state of `target` are left out, as in a copy that is moved back to the folder of the original.
    """
    files = sorted((checkpoint / "state").glob("*/_metadata/v2/*"))
    return next(
        (
            file
            for file in files
            if not file.name.startswith(".") and not (target is not None and _names_only(file, target))
        ),
        None,
    )


def _names_only(file: Path, checkpoint: Path) -> bool:
    """Return whether all files that Spark's description of an operator names are in the state of a checkpoint."""
    state = (checkpoint / "state").resolve()
    try:
        # A line with the version, then JSON. The paths have the scheme `file`.
        operator = json.loads(file.read_text().partition("\n")[2])
        names = [name for store in operator["stateStoreInfo"] for name in store["stateSchemaFilePaths"]]
        return all(Path(name.removeprefix("file:")).resolve().is_relative_to(state) for name in names)
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def copy_files(source: Path, target: Path, *, link: bool = False) -> None:
    """Copy all files of a checkpoint but its locks. Files that Spark never writes again may be linked instead.

    Raises the first `OSError`.
    """
    failures: list[OSError] = []

    def ignore(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder).name == "_millstream" and name in _LOCKS]

    def copy(file: str, copied: str) -> None:
        try:
            _link_or_copy(file, copied) if link else shutil.copy2(file, copied)
        except OSError as error:
            failures.append(error)
            raise

    try:
        shutil.copytree(source, target, ignore=ignore, copy_function=copy)
    except shutil.Error as error:
        # It has a text for each file, and neither a number nor a file name.
        raise (failures[0] if failures else OSError(error.args[0][0][-1])) from None


def _link_or_copy(file: str, copied: str) -> None:
    """Link a file to another name, or copy it on a file system that does not allow the link."""
    try:
        os.link(file, copied)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(file, copied)


def _make_parent(target: Path) -> None:
    """Create the folder of `target`, with the names of new folders on the disk."""
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        flush_path(folder.parent)


def _copy_whole(source: Path, target: Path) -> None:
    partial = target.with_name(f".{target.name}{_PARTIAL}")
    try:
        _make_parent(target)
        if partial.exists():
            shutil.rmtree(partial)
        copy_files(source, partial)
        flush_folder(partial)
        partial.rename(target)
        # A move deletes the source next, which may be on another disk.
        flush_path(target.parent)
    except OSError as error:
        raise NotReady(
            f"{target} cannot be written: {error.strerror or error}", "name a folder that you may write to"
        ) from error


def _require(source: Path, target: Path) -> None:
    finish_replacement(source)
    if Checkpoint(source).query_id() is None:
        raise InvalidInput(f"{source} is not a checkpoint", "name a folder that contains a file 'metadata'")
    if target.exists():
        raise InvalidInput(f"{target} exists", "name a folder that does not exist")
    if source.resolve() in target.resolve().parents:
        raise InvalidInput(f"{target} is inside the checkpoint", "name a folder outside of it")
