"""Record in the checkpoint batches that left nothing in a sink, so that they do not seem missing."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.atomic_file import write_durably
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath

NAME = "empty_batches.json"
# As many as a start may have to explain. Spark itself keeps the offsets of 100 batches.
KEPT = 1000

_lock = threading.Lock()


@dataclass(frozen=True)
class EmptyBatches:
    """The batches of one sink that had no rows, or no effect. `since` is the first batch for which this is known."""

    since: int
    batches: tuple[int, ...] = ()


def read(checkpoint: CheckpointPath, sink: str) -> EmptyBatches | None:
    """Return what is known of a sink, or None before `begin`."""
    entry = _read_entries(checkpoint).get(sink)
    return None if entry is None else EmptyBatches(int(entry["since"]), tuple(entry["batches"]))


def begin(checkpoint: CheckpointPath, sink: str, batch: int) -> None:
    """Record a sink's empty batches from this one on, which is the next to run.

    Discard what was recorded of it and of later ones, because a repair or an older copy has undone those batches.
    """
    with _lock:
        entries = _read_entries(checkpoint)
        entry = entries.get(sink, {"since": batch, "batches": []})
        updated = {
            "since": min(entry["since"], batch),
            "batches": [number for number in entry["batches"] if number < batch],
        }
        if entries.get(sink) != updated:
            _write_entries(checkpoint, {**entries, sink: updated})


def add(checkpoint: CheckpointPath, sink: str, batch: int) -> None:
    """Record that a batch had no rows for a sink, or no effect on it, and was not committed there."""
    with _lock:
        entries = _read_entries(checkpoint)
        entry = entries.setdefault(sink, {"since": batch, "batches": []})
        if batch not in entry["batches"]:
            entry["batches"] = sorted([*entry["batches"], batch])[-KEPT:]
            if len(entry["batches"]) == KEPT:
                entry["since"] = max(entry["since"], entry["batches"][0])
            _write_entries(checkpoint, entries)


def _read_entries(checkpoint: CheckpointPath) -> dict[str, Any]:
    file = checkpoint / "_millstream" / NAME
    if not file.exists():
        return {}
    try:
        return dict(json.loads(file.read_text()))
    except (ValueError, TypeError) as error:
        raise CheckpointError(
            f"{file} cannot be read: {error}", "delete the file; it is written again"
        ) from error


def _write_entries(checkpoint: CheckpointPath, entries: dict[str, Any]) -> None:
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    # Spark commits the batch next. A commit without this record would look like missing rows.
    write_durably(folder / NAME, json.dumps(entries))
