"""The records that a query went on without, as somebody decided: kept in the checkpoint, oldest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = "gaps.json"


def read(checkpoint: Path) -> list[dict[str, Any]]:
    """What `add` has kept; nothing before the first."""
    file = checkpoint / "_millstream" / NAME
    if not file.exists():
        return []
    try:
        return list(json.loads(file.read_text()))
    except ValueError as torn:
        raise CannotGoOn(
            f"{file} cannot be read: {torn}", "keep a copy elsewhere, then delete the file"
        ) from torn


def add(checkpoint: Path, gaps: Sequence[dict[str, Any]]) -> None:
    """Keep gaps: source, topic, partition, start and end (the first offset that is there), and when."""
    folder = checkpoint / "_millstream"
    folder.mkdir(parents=True, exist_ok=True)
    half = folder / f"{NAME}.half"
    half.write_text(json.dumps([*read(checkpoint), *gaps], indent=1))
    half.replace(folder / NAME)
