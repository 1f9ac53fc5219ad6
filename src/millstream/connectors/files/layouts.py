"""The two ways a batch's staged files come to stand in a folder: moved one by one, or as a folder of the batch."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from millstream.connectors.failpoints import reach
from millstream.connectors.files import manifest as manifests
from millstream.connectors.files import publish
from millstream.diagnostics.failure import CannotGoOn, NotReady

if TYPE_CHECKING:
    from millstream.connectors.files.place import Found, Place
    from millstream.connectors.remembered import Entry, Note
    from millstream.connectors.sink import SinkIdentity

# A checkpoint keeps the offsets of 100 batches unless told otherwise, and only a batch it has offsets of
# can come again. Twice that; then the oldest go, half of them at once.
KEEP = 200

COLUMN = "batch"
"""The column that readers make of a batch's folder."""
LEDGER = "_batch"
"""The file in a batch's folder that says whose it is. It also keeps an empty batch's folder from being replaced."""
# The number comes first, so that folders sort as batches were written; nine digits are thirty years of one a second.
# What follows is never read as a number or a date by readers that guess types.
_FOLDER = re.compile(rf"{COLUMN}=(?P<batch>\d{{9,}})-(?P<tag>[0-9a-f]{{8}})")


class Layout(ABC):
    """How batches of one sink of one query stand in one folder."""

    def __init__(self, place: Place, identity: SinkIdentity) -> None:
        self.place, self.identity = place, identity

    @abstractmethod
    def open(self) -> None:
        """Finish what an earlier start left. Raises `NotReady` where the folder is laid out the other way."""

    @abstractmethod
    def holds(self, batch: int) -> bool:
        """Is the batch committed, and every file of it in its place?"""

    @abstractmethod
    def finish(self, batch: int) -> bool:
        """Is the batch committed? Moves that it lacks are made."""

    @abstractmethod
    def entries(self) -> tuple[Entry, ...]:
        """The newest batch of each writer of this query; asked before `open`."""

    @abstractmethod
    def entry(self, batch: int) -> Entry | None:
        """What stands beside a batch of this writer; None where that is no longer kept."""

    @abstractmethod
    def commit(self, batch: int, home: str, found: list[Found], note: Note) -> bool:
        """Commit what is staged in `home`; False when another driver has committed the batch before."""


class Moved(Layout):
    """A manifest commits a batch, then its files are renamed one by one into the folder or its partitions."""

    _kept: list[int]
    _below = 0

    def open(self) -> None:
        """Make the moves that a crash left."""
        if any(_FOLDER.fullmatch(name) for name in self.place.names("")):
            raise NotReady(
                "the folder holds batches in folders of their own, and files beside them could not be read",
                "say layout: by_batch, or write to another folder",
            )
        self._kept = publish.recover(self.place, self.identity)
        self._below = manifests.below(self.place, self.identity)

    def holds(self, batch: int) -> bool:
        """Is the manifest there, and every file in its place?"""
        if batch < self._below:
            return True
        held = manifests.read(self.place, self.identity, batch)
        return held is not None and publish.whole(self.place, held)

    def finish(self, batch: int) -> bool:
        """Is the manifest there? Then its files are moved."""
        if batch < self._below:
            return True
        held = manifests.read(self.place, self.identity, batch)
        if held is not None:
            publish.roll_forward(self.place, held)
        return held is not None

    def entries(self) -> tuple[Entry, ...]:
        """Of the newest manifest of each writer."""
        return manifests.entries(self.place, self.identity)

    def entry(self, batch: int) -> Entry | None:
        """Of its manifest."""
        text = self.place.text(f"{manifests.folder(self.identity)}/{batch}.json")
        return manifests.entry(text, self.identity)

    def commit(self, batch: int, home: str, found: list[Found], note: Note) -> bool:
        """Create the manifest, move the files, forget old manifests."""
        held = publish.commit(self.place, self.identity, batch, home, found, note)
        reach("files.committed")
        publish.roll_forward(self.place, held)
        reach("files.published")
        publish.clear(self.place, self.identity, batch)
        self._kept.append(batch)
        if len(self._kept) >= 2 * KEEP:
            self._kept = manifests.forget(self.place, self.identity, self._kept, KEEP)
            self._below = self._kept[0]
        return held.staging == home


class ByBatch(Layout):
    """A batch is one folder, `batch=000000012-3f0c9a1b`; its rename out of staging commits and shows it at once."""

    _newest = -1

    def open(self) -> None:
        """See which batches are there, and drop what attempts at them left."""
        if not self.place.renames_folders:
            raise NotReady(
                "layout by_batch needs a file system on which a folder is renamed in one step, and this one copies",
                "leave layout out, or write to a local folder or HDFS",
            )
        names = [name for name in self.place.names("") if not name.startswith(("_", "."))]
        found = [_FOLDER.fullmatch(name) for name in names]
        if None in found:
            raise NotReady(
                f"the folder holds '{names[found.index(None)]}', which stands in no folder of a batch: readers "
                "would refuse both together",
                "leave layout out, or write to another folder",
            )
        own = [int(one["batch"]) for one in found if one and one["tag"] == manifests.tag(self.identity)]
        self._newest = max(own, default=-1)
        publish.clear(self.place, self.identity, self._newest)

    def holds(self, batch: int) -> bool:
        """Is its folder, or one of a later batch, there?

        Raises `CannotGoOn` when its folder belongs to another writer.
        """
        if batch < self._newest:
            return True
        folder = self._folder(batch)
        if not self.place.exists(folder):
            return False
        text = self.place.text(f"{folder}/{LEDGER}")
        owner = _owner(text) if text is not None else self.identity.key
        if owner != self.identity.key:
            raise CannotGoOn(
                f"the folder {folder} belongs to {owner}, and this is {self.identity.key}",
                "write to another folder",
            )
        return True

    def finish(self, batch: int) -> bool:
        """The same as `holds`: a folder is whole from its first moment."""
        return self.holds(batch)

    def entries(self) -> tuple[Entry, ...]:
        """Of the newest folder of each writer."""
        newest = {
            one["tag"]: name for name in sorted(self.place.names("")) if (one := _FOLDER.fullmatch(name))
        }
        found = [
            manifests.entry(self.place.text(f"{name}/{LEDGER}"), self.identity) for name in newest.values()
        ]
        return tuple(one for one in found if one is not None)

    def entry(self, batch: int) -> Entry | None:
        """Of its folder's ledger."""
        return manifests.entry(self.place.text(f"{self._folder(batch)}/{LEDGER}"), self.identity)

    def commit(self, batch: int, home: str, found: list[Found], note: Note) -> bool:
        """Bring the files to the disk, then rename their folder."""
        place = self.place
        place.keep_only(home, {file.name for file in found})
        said = {
            "version": manifests.VERSION,
            **manifests.about(self.identity, note),
            "owner": self.identity.key,
            "batch": batch,
            "files": [{"name": file.name, "bytes": file.bytes} for file in found],
        }
        place.create(f"{home}/{LEDGER}", json.dumps(said, indent=1))
        inside = {file.name.rpartition("/")[0] for file in found}
        for name in (*(file.name for file in found), *sorted(inside - {""}), ""):
            place.settle(f"{home}/{name}")
        first = place.publish(home, self._folder(batch))
        if first:
            place.settle("")
            reach("files.committed")
        elif not self.holds(batch):
            raise CannotGoOn(
                f"the folder of batch {batch} vanished while it was read", "see who else removes such folders"
            )
        self._newest = max(self._newest, batch)
        publish.clear(place, self.identity, batch)
        reach("files.published")
        return first

    def _folder(self, batch: int) -> str:
        return f"{COLUMN}={batch:09d}-{manifests.tag(self.identity)}"


def _owner(text: str) -> str:
    """Whose batch a folder's ledger says it is; the text itself where it cannot be read."""
    try:
        return str(json.loads(text)["owner"])
    except (ValueError, KeyError, TypeError):
        return f"somebody whose {LEDGER} cannot be read"
