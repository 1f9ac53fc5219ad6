"""Read a checkpoint folder of Spark: who it belongs to, what was planned, what was committed."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.filelog import files
from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# The name that a source without new data has in an offset file.
NOTHING = "-"


@dataclass(frozen=True)
class Offsets:
    """One file of `offsets/`: what a batch was planned to read.

    `sources` has one entry a source, in the order of the plan: Spark's own JSON, or None where the source had
    nothing yet. `watermark` and `timestamp` are in milliseconds since 1970. `conf` are the settings that Spark
    keeps for the life of the checkpoint. `epoch`: written by continuous processing, which keeps nothing but offsets.
    """

    batch_id: int
    watermark: int
    timestamp: int
    conf: Mapping[str, str]
    sources: tuple[str | None, ...]
    epoch: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint folder on this machine's file system."""

    folder: Path

    def query_id(self) -> str | None:
        """The id Spark gave this checkpoint, or None before the first start."""
        file = self.folder / "metadata"
        if not file.exists():
            return None
        try:
            return str(json.loads(file.read_text())["id"])
        except (ValueError, KeyError, TypeError) as torn:
            raise CannotGoOn(
                f"{file} does not hold a query's id: {torn}",
                "put the file back from a copy, or start again with an empty checkpoint folder",
            ) from torn

    def ensure_id(self) -> str:
        """The query's id, made before Spark's first start when there is none.

        Sinks keep their books under this id, so it must be known before the first batch. The file is the one
        that Spark itself would write.
        """
        known = self.query_id()
        if known is not None:
            return known
        if self.planned() is not None:
            raise CannotGoOn(
                f"{self.folder} has batches and no file 'metadata': nothing says which query they belong to",
                "put the file back from a copy, or start again with an empty checkpoint folder",
            )
        return self.renew_id()

    def renew_id(self) -> str:
        """Give the checkpoint an id that no sink has seen; what it has read and its state stay."""
        made = str(uuid.uuid4())
        self.folder.mkdir(parents=True, exist_ok=True)
        half = self.folder / ".metadata.half"
        half.write_text(json.dumps({"id": made}, separators=(",", ":")))
        # Hadoop compares a file with the sum beside it, which would be that of the former id.
        (self.folder / ".metadata.crc").unlink(missing_ok=True)
        half.replace(self.folder / "metadata")
        return made

    def planned(self) -> int | None:
        """The newest batch whose offsets are written, or None before the first."""
        return self._newest("offsets")

    def committed(self) -> int | None:
        """The newest batch that Spark has committed, or None before the first."""
        return self._newest("commits")

    def offsets(self, batch_id: int) -> Offsets | None:
        """What that batch was planned to read, or None when its file is gone."""
        file = self.folder / "offsets" / str(batch_id)
        return _offsets(batch_id, file) if file.exists() else None

    def first(self, source: int) -> str | None:
        """Where the first batch of a source began, for sources that write it down (Kafka), as Spark's JSON."""
        file = self.folder / "sources" / str(source) / "0"
        if not file.exists():
            return None
        # Spark begins the file with a zero byte, so that old versions refuse it, and a version line.
        text = file.read_bytes().lstrip(b"\0").decode()
        return text.split("\n", 1)[1].strip() if text.startswith("v") and "\n" in text else text.strip()

    def files(self, source: int, start: str | None, end: str) -> tuple[str, ...]:
        """The files that a batch read of a file source, from its offsets; empty for other sources."""
        last = _log_offset(end)
        if last is None:
            return ()
        before = _log_offset(start)
        return files(self.folder / "sources" / str(source), -1 if before is None else before, last)

    def _newest(self, log: str) -> int | None:
        folder = self.folder / log
        if not folder.is_dir():
            return None
        return max((int(file.name) for file in folder.iterdir() if file.name.isdigit()), default=None)


def _log_offset(text: str | None) -> int | None:
    """The entry number in `{"logOffset": 3}`, or None for offsets of another shape."""
    told = json.loads(text) if text else None
    return int(told["logOffset"]) if isinstance(told, dict) and "logOffset" in told else None


def _offsets(batch_id: int, file: Path) -> Offsets:
    """Parse an offset file: a version line, a line of metadata, a line a source."""
    version, _, rest = file.read_text().partition("\n")
    lines = rest.splitlines()
    if version not in ("v1", "v2") or not any(lines):
        raise CannotGoOn(
            f"{file} is not an offset file of Spark: it is torn or of an unknown version",
            "if commits/ has no file of that number, delete it and the batch is planned again",
        )
    try:
        # Continuous processing writes no metadata: the line is there, and empty.
        about: dict[str, Any] = json.loads(lines[0]) if lines[0] else {}
    except ValueError as torn:
        raise CannotGoOn(
            f"{file} is torn: {torn}",
            "if commits/ has no file of that number, delete it and the batch is planned again",
        ) from torn
    # v2 writes `name:{…}`; names have no colon.
    texts = [line.partition(":")[2] if version == "v2" else line for line in lines[1:]]
    return Offsets(
        batch_id=batch_id,
        watermark=int(about.get("batchWatermarkMs", 0)),
        timestamp=int(about.get("batchTimestampMs", 0)),
        conf=about.get("conf", {}),
        sources=tuple(None if text == NOTHING else text for text in texts),
        epoch=not lines[0],
    )
