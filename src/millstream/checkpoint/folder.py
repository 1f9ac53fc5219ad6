"""Read a checkpoint folder of Spark: its id, its planned batches and its committed batches."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.atomic_file import write_durably
from millstream.checkpoint.file_source_log import list_batch_files, list_read_files
from millstream.checkpoint.remote.path import RemotePath
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.checkpoint.remote.path import CheckpointPath

# The name that a source without new data has in an offset file.
NOTHING = "-"


@dataclass(frozen=True)
class Offsets:
    """One file of `offsets/`: the input that was planned for a batch.

    `sources` has one entry per source, in the order of the plan: Spark's own JSON, or None if the source had no data
    yet. `watermark` and `timestamp` are in milliseconds since 1970. `conf` are the settings that Spark keeps for the
    life of the checkpoint. `is_epoch` is true for continuous processing, which writes nothing but offsets.
    """

    batch_id: int
    watermark: int
    timestamp: int
    conf: Mapping[str, str]
    sources: tuple[str | None, ...]
    is_epoch: bool

    @property
    def state_partitions(self) -> int | None:
        """Number of partitions that the state has in this batch, or None if the file does not contain it."""
        text = str(self.conf.get("spark.sql.shuffle.partitions", ""))
        return int(text) if text.isdigit() else None


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint folder on this machine's file system."""

    folder: CheckpointPath

    def query_id(self) -> str | None:
        """Return the id that Spark gave this checkpoint, or None before the first start."""
        file = self.folder / "metadata"
        if not file.exists():
            return None
        try:
            return str(json.loads(file.read_text())["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{file} does not contain a query's id: {error}",
                "restore the file from a backup, or start again with an empty checkpoint folder",
            ) from error

    def ensure_id(self) -> str:
        """Return the query's id. Create it before Spark's first start if there is none.

        The ledgers of sinks use this id, so it must be known before the first batch. The file is the one that Spark
        itself would write.
        """
        existing = self.query_id()
        if existing is not None:
            return existing
        if self.planned() is not None:
            raise CheckpointError(
                f"{self.folder} has batches but no file 'metadata', so it is unknown which query they belong to",
                "restore the file from a backup, or start again with an empty checkpoint folder",
            )
        return self.renew_id()

    @property
    def can_renew_id(self) -> bool:
        """Whether the file with the id can be replaced. On an object store, no file of Spark can."""
        return not (isinstance(self.folder, RemotePath) and self.folder.is_object)

    def renew_id(self) -> str:
        """Give the checkpoint an id that no sink has seen. Its offsets and its state stay."""
        new_id = str(uuid.uuid4())
        self.folder.mkdir(parents=True, exist_ok=True)
        # Hadoop compares a file with its checksum file, which would be that of the former id.
        (self.folder / ".metadata.crc").unlink(missing_ok=True)
        write_durably(self.folder / "metadata", json.dumps({"id": new_id}, separators=(",", ":")))
        return new_id

    def planned(self) -> int | None:
        """Return the newest batch whose offsets are written, or None before the first."""
        return self._newest_number("offsets")

    def committed(self) -> int | None:
        """Return the newest batch that Spark has committed, or None before the first."""
        return self._newest_number("commits")

    def has_state(self) -> bool:
        """Return whether the query has state, once it has run a batch."""
        folder = self.folder / "state"
        return folder.is_dir() and any(path.is_dir() for path in folder.iterdir())

    def offsets(self, batch_id: int) -> Offsets | None:
        """Return the input that was planned for a batch, or None if its file is deleted."""
        file = self.folder / "offsets" / str(batch_id)
        return _parse_offsets(batch_id, file) if file.exists() else None

    def first(self, source: int) -> str | None:
        """Return where the first batch of a source began, for sources that record it (Kafka), as Spark's JSON."""
        file = self.folder / "sources" / str(source) / "0"
        if not file.exists():
            return None
        # The file begins with a zero byte, so that old versions of Spark reject it, and a version line.
        text = file.read_bytes().lstrip(b"\0").decode()
        return text.split("\n", 1)[1].strip() if text.startswith("v") and "\n" in text else text.strip()

    def files(self, source: int, start: str | None, end: str) -> tuple[str, ...]:
        """Return the files that a batch read of a file source, from its offsets. Empty for other sources."""
        last = _log_offset(end)
        if last is None:
            return ()
        previous = _log_offset(start)
        return list_batch_files(
            self.folder / "sources" / str(source), -1 if previous is None else previous, last
        )

    def read_files(self, source: int, end: str) -> tuple[tuple[str, int], ...]:
        """Return each file that was read of a file source up to an offset, with its time of change in milliseconds.

        Includes what a former checkpoint has read. Empty for other sources.
        """
        last = _log_offset(end)
        return () if last is None else list_read_files(self.folder / "sources" / str(source), last)

    def next_watermark(self, batch_id: int) -> int:
        """Return the watermark after a committed batch, in milliseconds since 1970; 0 if there is none."""
        file = self.folder / "commits" / str(batch_id)
        try:
            commit = json.loads(file.read_text().split("\n", 1)[1])
            return int(commit.get("nextBatchWatermarkMs", 0))
        except (OSError, ValueError, IndexError) as error:
            raise CheckpointError(
                f"{file} cannot be read: {error}",
                "run 'millstream checkpoint verify', which names the damaged files",
            ) from error

    def _newest_number(self, log: str) -> int | None:
        folder = self.folder / log
        if not folder.is_dir():
            return None
        return max((int(file.name) for file in folder.iterdir() if file.name.isdigit()), default=None)


def _log_offset(text: str | None) -> int | None:
    """Return the entry number in `{"logOffset": 3}`, or None for offsets of another shape."""
    offset = json.loads(text) if text else None
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else None


def _parse_offsets(batch_id: int, file: CheckpointPath) -> Offsets:
    """Parse an offset file: a version line, a line of metadata, one line per source."""
    version, _, body = file.read_text().partition("\n")
    lines = body.splitlines()
    if version not in ("v1", "v2") or not any(lines):
        raise CheckpointError(
            f"{file} is not an offset file of Spark: it is truncated or of an unknown version",
            "if commits/ has no file with this number, delete the offset file; Spark then plans the batch again",
        )
    try:
        # Continuous processing writes no metadata: the line exists and is empty.
        header: dict[str, Any] = json.loads(lines[0]) if lines[0] else {}
    except ValueError as error:
        raise CheckpointError(
            f"{file} is truncated: {error}",
            "if commits/ has no file with this number, delete the offset file; Spark then plans the batch again",
        ) from error
    # v2 writes `name:{…}`; names have no colon.
    texts = [line.partition(":")[2] if version == "v2" else line for line in lines[1:]]
    return Offsets(
        batch_id=batch_id,
        watermark=int(header.get("batchWatermarkMs", 0)),
        timestamp=int(header.get("batchTimestampMs", 0)),
        conf=header.get("conf", {}),
        sources=tuple(None if text == NOTHING else text for text in texts),
        is_epoch=not lines[0],
    )
