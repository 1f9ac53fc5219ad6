"""The manifest of a batch: which files it is, under which names they end. Its existence commits the batch."""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.connectors.remembered import Entry, Note, noted
from millstream.diagnostics.failure import CannotGoOn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.connectors.files.place import Found, Place
    from millstream.connectors.sink import SinkIdentity

# Spark, pyarrow and Hive pass over names that begin with an underscore.
HOME = "_millstream"
STAGING = f"{HOME}/staging"
_BELOW = "held-below-"
VERSION = 1


@dataclass(frozen=True)
class Move:
    """One file: its name in the staging folder, its name in the target folder, its length in bytes."""

    staged: str
    name: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """A committed batch. `staging` is the folder its files are moved out of."""

    owner: str
    batch: int
    staging: str
    files: tuple[Move, ...]
    about: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Pipeline, query, when, and the note; nothing in one of an older version."""

    def text(self) -> str:
        """As JSON."""
        said = asdict(self)
        return json.dumps({"version": VERSION, **said.pop("about"), **said}, indent=1)


def about(identity: SinkIdentity, note: Note) -> dict[str, Any]:
    """What a ledger says of a batch beside its files."""
    at = time.time_ns() // 1_000_000
    return {"pipeline": identity.pipeline, "query": identity.query, "at": at, **note.plain()}


def entry(text: str | None, identity: SinkIdentity) -> Entry | None:
    """The entry in a manifest or in a folder's ledger, if it is one of this query and can be read."""
    try:
        said = json.loads(text or "null")
        named = (said.get("pipeline"), said.get("query")) == (identity.pipeline, identity.query)
        if not named and said["owner"] != identity.key:
            return None
        return Entry(said["owner"], int(said["batch"]), int(said.get("at", 0)), noted(said))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def tag(identity: SinkIdentity) -> str:
    """Eight letters that tell this sink of this query, in file names."""
    return hashlib.sha256(identity.key.encode()).hexdigest()[:8]


def folder(identity: SinkIdentity) -> str:
    """Where this sink's manifests stand."""
    return f"{HOME}/{tag(identity)}"


def plan(identity: SinkIdentity, batch: int, staging: str, found: list[Found], note: Note) -> Manifest:
    """The manifest of staged files: names that no other batch and no other query gives."""
    moves = []
    for number, file in enumerate(found):
        folders, _, name = file.name.rpartition("/")
        # Spark's own name, part-00000-<uuid>-c000.snappy.parquet, begins its endings at the first dot.
        ending = name.partition(".")[2]
        final = f"part-{tag(identity)}-{batch:06d}-{number:04d}.{ending}"
        moves.append(Move(file.name, f"{folders}/{final}" if folders else final, file.bytes))
    return Manifest(identity.key, batch, staging, tuple(moves), about(identity, note))


def read(place: Place, identity: SinkIdentity, batch: int) -> Manifest | None:
    """The manifest of a batch, or None when it is not committed. Raises `CannotGoOn` for another's."""
    name = f"{folder(identity)}/{batch}.json"
    text = place.text(name)
    if text is None:
        return None
    try:
        said = json.loads(text)
        manifest = Manifest(
            said["owner"], said["batch"], said["staging"], tuple(Move(**one) for one in said["files"])
        )
    except (ValueError, KeyError, TypeError) as cause:
        raise CannotGoOn(
            f"the manifest {name} of batch {batch} cannot be read", "restore it from a backup of the folder"
        ) from cause
    if manifest.owner != identity.key:
        raise CannotGoOn(
            f"the manifest {name} belongs to {manifest.owner}, and this is {identity.key}",
            "write to another folder",
        )
    return manifest


def batches(place: Place, identity: SinkIdentity) -> list[int]:
    """The batches whose manifests are kept, oldest first."""
    names = place.names(folder(identity))
    return sorted(int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdigit())


def entries(place: Place, identity: SinkIdentity) -> tuple[Entry, ...]:
    """The newest batch of each writer of this query whose manifests are kept here."""
    found = []
    for home in place.names(HOME):
        kept = [int(name[:-5]) for name in place.names(f"{HOME}/{home}") if re.fullmatch(r"\d+\.json", name)]
        one = entry(place.text(f"{HOME}/{home}/{max(kept)}.json"), identity) if kept else None
        found += [one] if one is not None else []
    return tuple(found)


def below(place: Place, identity: SinkIdentity) -> int:
    """Batches before this one are committed, though their manifests are no longer kept."""
    marks = [name for name in place.names(folder(identity)) if name.startswith(_BELOW)]
    return max((int(name.removeprefix(_BELOW)) for name in marks), default=0)


def forget(place: Place, identity: SinkIdentity, kept: list[int], keep: int) -> list[int]:
    """Drop the oldest manifests but `keep`, saying first that they were there. Gives those that are kept."""
    gone, rest = kept[:-keep], kept[-keep:]
    if not gone:
        return rest
    home = folder(identity)
    place.create(f"{home}/{_BELOW}{rest[0]}", "batches before this one are committed\n")
    for batch in gone:
        place.remove(f"{home}/{batch}.json")
    for name in place.names(home):
        if name.startswith(_BELOW) and int(name.removeprefix(_BELOW)) < rest[0]:
            place.remove(f"{home}/{name}")
    return rest
