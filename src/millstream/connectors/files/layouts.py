"""Two layouts for publishing a batch's staged files: moved one by one, or as one folder per batch."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from millstream.connectors.failpoints import hit_failpoint
from millstream.connectors.files import manifest as manifests
from millstream.connectors.files import publish
from millstream.diagnostics.failure import CheckpointError, NotReady

if TYPE_CHECKING:
    from millstream.connectors.api.batch_ledger import BatchMetadata, LedgerEntry
    from millstream.connectors.api.writer import SinkIdentity
    from millstream.connectors.files.sink_folder import FileEntry, SinkFolder

# By default a checkpoint keeps the offsets of 100 batches, and only a batch with offsets can be repeated. Twice that
# are kept; then the oldest half is dropped.
KEEP = 200

COLUMN = "batch"
"""Column that readers derive from a batch's folder."""
LEDGER = "_batch"
"""File in a batch's folder with its ledger entry. It also prevents the folder of an empty batch from being
replaced."""
# The number is first, so that folders sort in order of writing; nine digits last thirty years at one per second.
# Readers that infer types never take the name for a number or a date.
_FOLDER = re.compile(rf"{COLUMN}=(?P<batch>\d{{9,}})-(?P<tag>[0-9a-f]{{8}})")


class FileLayout(ABC):
    """Layout of the batches of one sink of one query in one folder."""

    def __init__(self, place: SinkFolder, identity: SinkIdentity) -> None:
        self.place, self.identity = place, identity

    @abstractmethod
    def open(self) -> None:
        """Finish an earlier start's work. Raises `NotReady` if the folder has the other layout."""

    @abstractmethod
    def has_batch(self, batch: int) -> bool:
        """Return whether the batch is committed and all its files are in place."""

    @abstractmethod
    def finish(self, batch: int) -> bool:
        """Return whether the batch is committed, after moving files that are not in place."""

    @abstractmethod
    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return the newest batch of each writer of this query; called before `open`."""

    @abstractmethod
    def entry(self, batch: int) -> LedgerEntry | None:
        """Return the ledger entry of a batch of this writer; None if it was dropped."""

    @abstractmethod
    def commit(self, batch: int, home: str, files: list[FileEntry], note: BatchMetadata) -> bool:
        """Commit the files staged in `home`; return False if another driver has committed the batch before."""


class RenamedFiles(FileLayout):
    """A manifest commits a batch, then its files are renamed one by one into the folder or its partitions."""

    _manifests: list[int]
    _below = 0

    def open(self) -> None:
        """Make the moves that a crash left."""
        if any(_FOLDER.fullmatch(name) for name in self.place.names("")):
            raise NotReady(
                "the folder was written with layout: by_batch, and readers could not read other files next to its "
                "batch folders",
                "set layout: by_batch, or write to another folder",
            )
        self._manifests = publish.finish_moves(self.place, self.identity)
        self._below = manifests.first_kept_batch(self.place, self.identity)

    def has_batch(self, batch: int) -> bool:
        """Return whether the manifest exists and all files are in place."""
        if batch < self._below:
            return True
        manifest = manifests.read_manifest(self.place, self.identity, batch)
        return manifest is not None and publish.is_complete(self.place, manifest)

    def finish(self, batch: int) -> bool:
        """Return whether the manifest exists, after moving its files."""
        if batch < self._below:
            return True
        manifest = manifests.read_manifest(self.place, self.identity, batch)
        if manifest is not None:
            publish.roll_forward(self.place, manifest)
        return manifest is not None

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return the entry in the newest manifest of each writer."""
        return manifests.list_entries(self.place, self.identity)

    def entry(self, batch: int) -> LedgerEntry | None:
        """Return the entry in the batch's manifest."""
        text = self.place.text(manifests.manifest_path(self.identity, batch))
        return manifests.parse_entry(text, self.identity)

    def commit(self, batch: int, home: str, files: list[FileEntry], note: BatchMetadata) -> bool:
        """Create the manifest, move the files, drop old manifests."""
        manifest = publish.commit_manifest(self.place, self.identity, batch, home, files, note)
        if manifest.staging == home and self._is_forgotten(batch):
            # The name was free only because the run that committed this batch has since dropped its manifest.
            publish.withdraw_manifest(self.place, self.identity, manifest)
            return False
        hit_failpoint("files.committed")
        publish.roll_forward(self.place, manifest)
        hit_failpoint("files.published")
        publish.clear_staging(self.place, self.identity, batch)
        self._manifests.append(batch)
        if len(self._manifests) >= 2 * KEEP:
            self._manifests = manifests.drop_old_manifests(self.place, self.identity, self._manifests, KEEP)
            self._below = self._manifests[0]
        return manifest.staging == home

    def _is_forgotten(self, batch: int) -> bool:
        """Return whether another run has committed this batch and since dropped its manifest.

        Called after creating the manifest, because a run records what it drops before dropping it. Manifests are
        dropped in order, so that an existing one shows that all later ones exist.
        """
        before = self._manifests[-1] if self._manifests else batch
        if before < batch and self.place.exists(manifests.manifest_path(self.identity, before)):
            return False
        self._below = manifests.first_kept_batch(self.place, self.identity)
        return batch < self._below


class ByBatch(FileLayout):
    """A batch is one folder, `batch=000000012-3f0c9a1b`; renaming it out of staging commits and publishes it."""

    _newest = -1

    def open(self) -> None:
        """Find the existing batches, and drop the remains of their other attempts."""
        if not self.place.renames_folders:
            raise NotReady(
                "layout: by_batch needs a file system that renames folders atomically, and this one copies the "
                "files",
                "remove layout, or write to a local folder or HDFS",
            )
        names = [name for name in self.place.names("") if not name.startswith(("_", "."))]
        matches = [_FOLDER.fullmatch(name) for name in names]
        if None in matches:
            raise NotReady(
                f"the folder contains '{names[matches.index(None)]}' outside of a batch folder: readers "
                "would reject both together",
                "remove layout, or write to another folder",
            )
        own_folders = [
            int(match["batch"])
            for match in matches
            if match and match["tag"] == manifests.writer_tag(self.identity)
        ]
        self._newest = max(own_folders, default=-1)
        publish.clear_staging(self.place, self.identity, self._newest)

    def has_batch(self, batch: int) -> bool:
        """Return whether the folder of this batch or of a later one exists.

        Raises `CheckpointError` if the folder belongs to another writer.
        """
        if batch < self._newest:
            return True
        folder = self._folder(batch)
        if not self.place.exists(folder):
            return False
        text = self.place.text(f"{folder}/{LEDGER}")
        owner = _owner(text) if text is not None else self.identity.key
        if owner != self.identity.key:
            raise CheckpointError(
                f"the folder {folder} belongs to {owner}, but this writer is {self.identity.key}",
                "write to another folder",
            )
        return True

    def finish(self, batch: int) -> bool:
        """Return the same as `has_batch`, because a folder is complete from the start."""
        return self.has_batch(batch)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Return the entry in the newest folder of each writer."""
        newest = {
            match["tag"]: name for name in sorted(self.place.names("")) if (match := _FOLDER.fullmatch(name))
        }
        entries = [
            manifests.parse_entry(self.place.text(f"{name}/{LEDGER}"), self.identity)
            for name in newest.values()
        ]
        return tuple(match for match in entries if match is not None)

    def entry(self, batch: int) -> LedgerEntry | None:
        """Return the entry in the batch's folder."""
        return manifests.parse_entry(self.place.text(f"{self._folder(batch)}/{LEDGER}"), self.identity)

    def commit(self, batch: int, home: str, files: list[FileEntry], note: BatchMetadata) -> bool:
        """Flush the files to disk, then rename their folder.

        Another driver may commit the batch at the same time, and then deletes these files.
        """
        try:
            first = self._publish(batch, home, files, note)
        except FileNotFoundError:
            if not self.has_batch(batch):
                raise
            first = False
        if first:
            self.place.settle("")
            hit_failpoint("files.committed")
        elif not self.has_batch(batch):
            raise CheckpointError(
                f"the folder of batch {batch} disappeared while it was read",
                "find out which program deletes these folders, and stop it",
            )
        self._newest = max(self._newest, batch)
        publish.clear_staging(self.place, self.identity, batch)
        hit_failpoint("files.published")
        return first

    def _publish(self, batch: int, home: str, files: list[FileEntry], note: BatchMetadata) -> bool:
        """Flush and rename; return False if the batch has a folder, raise FileNotFoundError if a file is missing."""
        place = self.place
        place.keep_only(home, {file.name for file in files})
        ledger = {
            "version": manifests.VERSION,
            **manifests.ledger_fields(self.identity, note),
            "owner": self.identity.key,
            "batch": batch,
            "files": [{"name": file.name, "bytes": file.bytes} for file in files],
        }
        place.create(f"{home}/{LEDGER}", json.dumps(ledger, indent=1))
        subfolders = {file.name.rpartition("/")[0] for file in files}
        for name in (*(file.name for file in files), *sorted(subfolders - {""}), ""):
            place.settle(f"{home}/{name}")
        return place.publish(home, self._folder(batch))

    def _folder(self, batch: int) -> str:
        return f"{COLUMN}={batch:09d}-{manifests.writer_tag(self.identity)}"


def _owner(text: str) -> str:
    """Return the owner in a folder's ledger file, or a description if it cannot be read."""
    try:
        return str(json.loads(text)["owner"])
    except (ValueError, KeyError, TypeError):
        return f"an unknown writer, because {LEDGER} cannot be read"
