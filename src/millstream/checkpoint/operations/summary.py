"""Summarise a checkpoint for a person: its batches, offsets, sizes, owner and versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from millstream.checkpoint import metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.lock import find_owner
from millstream.checkpoint.remote.path import relative_path
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import CheckpointPath


@dataclass(frozen=True)
class CheckpointSummary:
    """What is in a checkpoint folder. Sizes are in bytes; `watermark` is ISO-8601 or None before the first one."""

    query: str
    folder: str
    query_id: str | None
    planned: int | None
    committed: int | None
    oldest: int | None
    watermark: str | None
    written: str | None
    sizes: dict[str, int]
    owner: str | None
    versions: dict[str, str]
    settings: dict[str, str]
    sources: list[dict[str, Any]]
    operators: list[str]

    @property
    def bytes(self) -> int:
        """The size of the whole folder."""
        return sum(self.sizes.values())


def summarize_checkpoint(query: str, folder: CheckpointPath) -> CheckpointSummary:
    """Read a checkpoint. Raises `CheckpointError` if its newest offsets are corrupt."""
    checkpoint = Checkpoint(folder)
    planned = checkpoint.planned()
    offsets = None if planned is None else checkpoint.offsets(planned)
    record = _read_record(folder)
    names = [entry.get("name", "?") for entry in record.sources] if record else []
    texts = offsets.sources if offsets else ()
    return CheckpointSummary(
        query=query,
        folder=str(folder),
        query_id=checkpoint.query_id(),
        planned=planned,
        committed=checkpoint.committed(),
        oldest=_oldest(folder),
        watermark=_format_millis(offsets.watermark) if offsets and offsets.watermark else None,
        written=_format_millis(offsets.timestamp) if offsets and offsets.timestamp else None,
        sizes=_measure(folder),
        owner=find_owner(folder),
        versions=record.versions if record else {},
        settings=dict(offsets.conf) if offsets else {},
        sources=[
            {
                "source": names[number] if number < len(names) else "?",
                "offsets": None if text is None else json.loads(text),
            }
            for number, text in enumerate(texts)
        ],
        operators=[operator.kind for operator in record.plan.stateful] if record and record.plan else [],
    )


def _read_record(folder: CheckpointPath) -> metadata.QueryMetadata | None:
    try:
        return metadata.read(folder)
    except CheckpointError:
        return None


def _oldest(folder: CheckpointPath) -> int | None:
    log = folder / "offsets"
    if not log.is_dir():
        return None
    return min((int(file.name) for file in log.iterdir() if file.name.isdigit()), default=None)


def _measure(folder: CheckpointPath) -> dict[str, int]:
    """Return the bytes of each folder in a checkpoint."""
    sizes: dict[str, int] = {}
    for file in folder.rglob("*"):
        try:
            if file.is_file():
                part = relative_path(file, folder).parts[0]
                sizes[part] = sizes.get(part, 0) + file.stat().st_size
        except OSError:
            # A running query deletes old files meanwhile.
            continue
    return sizes


def _format_millis(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
