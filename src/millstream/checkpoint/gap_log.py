"""Record in a checkpoint the deleted records that a query continued without, oldest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.atomic_file import write_durably
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checkpoint.remote.path import CheckpointPath

NAME = "gaps.json"


def read(checkpoint: CheckpointPath) -> list[dict[str, Any]]:
    """Return what `add` has recorded, or an empty list."""
    file = checkpoint / "_millstream" / NAME
    if not file.exists():
        return []
    try:
        return list(json.loads(file.read_text()))
    except ValueError as error:
        raise CheckpointError(
            f"{file} cannot be read: {error}", "copy the file to another folder, then delete it here"
        ) from error


def add(checkpoint: CheckpointPath, gaps: Sequence[dict[str, Any]]) -> None:
    """Record gaps: source, topic, partition, start and end (the first offset that exists), and the time."""
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / NAME, json.dumps([*read(checkpoint), *gaps], indent=1))
