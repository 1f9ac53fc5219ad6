"""Manifest of a batch: the list of its files with their final names. Its existence commits the batch."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.connectors.api.batch_ledger import BatchMetadata, LedgerEntry, parse_metadata
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.files.sink_folder import FileEntry, SinkFolder

# Spark, pyarrow and Hive ignore names that begin with an underscore.
HOME = "_millstream"
STAGING = f"{HOME}/staging"
_COMMITTED_BELOW = "held-below-"
VERSION = 1


@dataclass(frozen=True)
class FileMove:
    """One file: its name in the staging folder, its name in the target folder, its length in bytes."""

    staged: str
    name: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """A committed batch. `staging` is the folder that its files are moved from."""

    owner: str
    batch: int
    staging: str
    files: tuple[FileMove, ...]
    about: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Pipeline, query, time and batch metadata; empty in a manifest of an older version."""

    def text(self) -> str:
        """Convert to JSON."""
        fields = asdict(self)
        return json.dumps({"version": VERSION, **fields.pop("about"), **fields}, indent=1)


def ledger_fields(identity: SinkIdentity, note: BatchMetadata) -> dict[str, Any]:
    """Return the ledger entry of a batch, without its files."""
    now = time.time_ns() // 1_000_000
    return {"pipeline": identity.pipeline, "query": identity.query, "at": now, **note.plain()}


def parse_entry(text: str | None, identity: SinkIdentity) -> LedgerEntry | None:
    """Parse the entry in a manifest or a folder's ledger file, if it is of this query and readable."""
    try:
        fields = json.loads(text or "null")
        is_same_query = (fields.get("pipeline"), fields.get("query")) == (identity.pipeline, identity.query)
        if not is_same_query and fields["owner"] != identity.key:
            return None
        return LedgerEntry(
            fields["owner"], int(fields["batch"]), int(fields.get("at", 0)), parse_metadata(fields)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def writer_tag(identity: SinkIdentity) -> str:
    """Return eight characters that identify this sink of this query in file names."""
    return hashlib.sha256(identity.key.encode()).hexdigest()[:8]


def manifest_folder(identity: SinkIdentity) -> str:
    """Return the folder of this sink's manifests."""
    return f"{HOME}/{writer_tag(identity)}"


def manifest_path(identity: SinkIdentity, batch: int) -> str:
    """Return the path of a batch's manifest."""
    return f"{manifest_folder(identity)}/{batch}.json"


def plan_manifest(
    identity: SinkIdentity, batch: int, staging: str, files: list[FileEntry], note: BatchMetadata
) -> Manifest:
    """Create the manifest of staged files, with names that no other batch or query uses."""
    moves = []
    for number, file in enumerate(files):
        folders, _, name = file.name.rpartition("/")
        # In Spark's name, part-00000-<uuid>-c000.snappy.parquet, the extensions start at the first dot.
        extensions = name.partition(".")[2]
        final_name = f"part-{writer_tag(identity)}-{batch:06d}-{number:04d}.{extensions}"
        moves.append(FileMove(file.name, f"{folders}/{final_name}" if folders else final_name, file.bytes))
    return Manifest(identity.key, batch, staging, tuple(moves), ledger_fields(identity, note))


def read_manifest(place: SinkFolder, identity: SinkIdentity, batch: int) -> Manifest | None:
    """Read the manifest of a batch; None if it is not committed.

    Raises `CheckpointError` if it is another writer's.
    """
    name = manifest_path(identity, batch)
    text = place.text(name)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        manifest = Manifest(
            fields["owner"],
            fields["batch"],
            fields["staging"],
            tuple(FileMove(**move) for move in fields["files"]),
        )
    except (ValueError, KeyError, TypeError) as cause:
        raise CheckpointError(
            f"the manifest {name} of batch {batch} cannot be read", "restore it from a backup of the folder"
        ) from cause
    if manifest.owner != identity.key:
        raise CheckpointError(
            f"the manifest {name} was written by {manifest.owner}, and this is {identity.key}: two different "
            f"queries or checkpoints write to this folder",
            "write to another folder",
        )
    return manifest


def list_batches(place: SinkFolder, identity: SinkIdentity) -> list[int]:
    """Return the batches with a manifest, oldest first."""
    names = place.names(manifest_folder(identity))
    return sorted(int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdigit())


def list_entries(place: SinkFolder, identity: SinkIdentity) -> tuple[LedgerEntry, ...]:
    """Return the newest batch of each writer of this query that has manifests here."""
    ledger_entries = []
    for home in place.names(HOME):
        batch_numbers = [
            int(name[:-5]) for name in place.names(f"{HOME}/{home}") if re.fullmatch(r"\d+\.json", name)
        ]
        ledger_entry = (
            parse_entry(place.text(f"{HOME}/{home}/{max(batch_numbers)}.json"), identity)
            if batch_numbers
            else None
        )
        ledger_entries += [ledger_entry] if ledger_entry is not None else []
    return tuple(ledger_entries)


def first_kept_batch(place: SinkFolder, identity: SinkIdentity) -> int:
    """Return the first batch with a manifest; all earlier batches are committed, but their manifests were dropped."""
    markers = [name for name in place.names(manifest_folder(identity)) if name.startswith(_COMMITTED_BELOW)]
    return max((int(name.removeprefix(_COMMITTED_BELOW)) for name in markers), default=0)


def drop_old_manifests(
    place: SinkFolder, identity: SinkIdentity, batch_numbers: list[int], keep: int
) -> list[int]:
    """Drop all but the newest `keep` manifests, after recording them as committed; return the batches left."""
    dropped, remaining = batch_numbers[:-keep], batch_numbers[-keep:]
    if not dropped:
        return remaining
    home = manifest_folder(identity)
    place.create(f"{home}/{_COMMITTED_BELOW}{remaining[0]}", "batches before this one are committed\n")
    for batch in dropped:
        place.remove(manifest_path(identity, batch))
    for name in place.names(home):
        if name.startswith(_COMMITTED_BELOW) and int(name.removeprefix(_COMMITTED_BELOW)) < remaining[0]:
            place.remove(f"{home}/{name}")
    return remaining
