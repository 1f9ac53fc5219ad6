"""Record in a checkpoint which former one it continues from, and what is left to do in the sinks."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.folder import Checkpoint
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath

NAME = "former.json"


@dataclass(frozen=True)
class FormerCheckpoint:
    """The checkpoint in whose place another one began. `folder` is its name next to the new one.

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
        raise CheckpointError(f"{file} cannot be read: {error}", "put it back from a copy") from error


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
    return checkpoint.with_name(former.folder)
