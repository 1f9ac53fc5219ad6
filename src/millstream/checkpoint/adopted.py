"""Which rows of other checkpoints a query took over, as somebody decided: kept in its checkpoint, oldest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from pathlib import Path

NAME = "adopted.json"


def read(checkpoint: Path) -> list[dict[str, Any]]:
    """What `add` has kept; nothing before the first."""
    file = checkpoint / "_millstream" / NAME
    if not file.exists():
        return []
    try:
        return [dict(one) for one in json.loads(file.read_text())]
    except (ValueError, TypeError) as torn:
        raise CannotGoOn(f"{file} cannot be read: {torn}", "delete the file, and run with --adopt") from torn


def add(checkpoint: Path, sink: str, writer: str, batch: int, at: str) -> None:
    """Keep that a sink's rows up to a batch of another writer are this checkpoint's from here on."""
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    half = folder / f"{NAME}.half"
    said = {"sink": sink, "writer": writer, "batch": batch, "at": at}
    half.write_text(json.dumps([*read(checkpoint), said], indent=1))
    half.replace(folder / NAME)


def last(checkpoint: Path) -> dict[str, int]:
    """The last batch of each writer that was taken over."""
    found: dict[str, int] = {}
    for one in read(checkpoint):
        found[one["writer"]] = max(found.get(one["writer"], -1), int(one["batch"]))
    return found
