"""Record in a checkpoint which former one it continues from, and what is left to do in the sinks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.checkpoint.remote.path import CheckpointPath

    AnyPath = TypeVar("AnyPath", bound=CheckpointPath)

NAME = "former.json"


@dataclass(frozen=True)
class FormerCheckpoint:
    """The checkpoint in whose place another one began. `folder` is its path from the new one's parent folder.

    `watermark` is where the new checkpoint's watermark begins, in milliseconds since 1970; 0 for none. `past` is
    what was chosen for the rows in the sinks. While `is_pending`, these have yet to be replaced, and no run starts.
    """

    folder: str
    query_id: str
    batch: int
    watermark: int
    past: str
    is_pending: bool


def read(checkpoint: CheckpointPath) -> FormerCheckpoint | None:
    """Return what was recorded, or None for a checkpoint that has no former one."""
    file = checkpoint / "_millstream" / NAME
    if not file.exists():
        return None
    try:
        return FormerCheckpoint(**json.loads(file.read_text()))
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}", "restore it from a backup") from error


def write(checkpoint: CheckpointPath, former: FormerCheckpoint) -> None:
    """Record the former checkpoint."""
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / NAME, json.dumps(asdict(former), indent=1))


def find_base(checkpoint: CheckpointPath) -> CheckpointPath:
    """Return the folder with the offsets to continue from: the former one until this one has committed a batch."""
    former = read(checkpoint)
    if former is None or Checkpoint(checkpoint).committed() is not None:
        return checkpoint
    return locate(checkpoint, former)


def locate(checkpoint: AnyPath, former: FormerCheckpoint) -> AnyPath:
    """Return the folder of a former checkpoint."""
    return checkpoint.parent / former.folder  # type: ignore[return-value]


def keep_place(checkpoint: Path, target: Path) -> None:
    """Let a checkpoint that is about to move from another folder to `target`'s find its former one from both."""
    former = read(checkpoint)
    if former is not None and checkpoint.parent != target.parent:
        write(checkpoint, replace(former, folder=str(locate(checkpoint, former).absolute())))
