"""Record in a checkpoint which sink rows were adopted, and which missing batches were accepted, oldest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.atomic_file import write_durably
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checkpoint.remote.path import CheckpointPath

NAME = "adopted.json"


def read(checkpoint: CheckpointPath) -> list[dict[str, Any]]:
    """Return what `add` and `add_missing` have recorded, or an empty list."""
    file = checkpoint / "_millstream" / NAME
    if not file.exists():
        return []
    try:
        return [dict(entry) for entry in json.loads(file.read_text())]
    except (ValueError, TypeError) as error:
        raise CheckpointError(
            f"{file} cannot be read: {error}", "delete the file, and run with --adopt"
        ) from error


def add(checkpoint: CheckpointPath, sink: str, writer: str, batch: int, at: str) -> None:
    """Record that a sink's rows up to a batch of another writer belong to this checkpoint from here on."""
    _append(checkpoint, {"sink": sink, "writer": writer, "batch": batch, "at": at})


def add_missing(checkpoint: CheckpointPath, sink: str, writer: str, batches: Sequence[int], at: str) -> None:
    """Record that the query continues without these batches in the sink. `writer` is the query's own key there."""
    entry = {"sink": sink, "writer": writer, "batch": batches[-1], "missing": list(batches), "at": at}
    _append(checkpoint, entry)


def read_missing(checkpoint: CheckpointPath, writer: str) -> set[int]:
    """Return the batches that the query continues without in the sink of that writer."""
    return {
        batch for entry in read(checkpoint) if entry["writer"] == writer for batch in entry.get("missing", ())
    }


def _append(checkpoint: CheckpointPath, entry: dict[str, Any]) -> None:
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / NAME, json.dumps([*read(checkpoint), entry], indent=1))


def last_adopted_batches(checkpoint: CheckpointPath) -> dict[str, int]:
    """Return the last adopted batch of each writer."""
    last_batches: dict[str, int] = {}
    for entry in read(checkpoint):
        last_batches[entry["writer"]] = max(last_batches.get(entry["writer"], -1), int(entry["batch"]))
    return last_batches
