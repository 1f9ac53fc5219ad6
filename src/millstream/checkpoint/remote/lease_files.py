"""The lease of a checkpoint on HDFS: a file with a number, and a folder through which its driver makes changes.

`_millstream/lease/7` can be created by one driver only, which touches it while it lives. The driver that takes over
creates number 8 and renames the folder `7.….files`. The name node decides each in one operation.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.remote.fence import DELETED, DRAFT, RenameFence
from millstream.checkpoint.remote.file_system import file_system
from millstream.checkpoint.remote.object_lease import OWN

if TYPE_CHECKING:
    from millstream.checkpoint.remote.path import RemotePath

_RELEASED, _CHANGES = ".released", ".files"


class LeaseFiles:
    """The leases of one checkpoint. Implements `LeaseStore`."""

    def __init__(self, checkpoint: RemotePath) -> None:
        self._checkpoint, self._folder = checkpoint, checkpoint / OWN / "lease"
        self._own_folder = self._folder

    def find_newest(self) -> tuple[int | None, bool]:
        """Return the highest number, and whether its lease was released."""
        try:
            names = {path.name for path in self._folder.iterdir()}
        except FileNotFoundError:
            return None, False
        newest = max((int(name) for name in names if name.isdigit()), default=None)
        return newest, f"{newest}{_RELEASED}" in names

    def find_mark(self, number: int) -> float | None:
        """Return when a lease was last renewed, by the file system's clock, or None if it is gone."""
        try:
            return (self._folder / str(number)).stat().st_mtime
        except FileNotFoundError:
            return None

    def read_owner(self, number: int | None) -> dict[str, Any]:
        """Return what the owner wrote. Empty if it has just created its lease, or if another one has deleted it."""
        try:
            owner = json.loads((self._folder / str(number)).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return owner if isinstance(owner, dict) else {}

    def create(self, number: int, owner: dict[str, Any]) -> None:
        """Create the file of the next number. Raises `FileExistsError` if another driver was faster."""
        # It exists before the file, so that any driver that takes over after this one renames it, and has a name of
        # its own, so that no other driver that wants the number creates it later.
        self._own_folder = self._folder / f"{number}.{uuid.uuid4().hex[:8]}{_CHANGES}"
        self._own_folder.mkdir()
        file = f"{self._folder}/{number}"
        try:
            file_system().create(file, json.dumps(owner).encode())
            # A driver that was suspended before this line may find that the number has been taken, and deleted by
            # the driver with the one after it.
            if self.find_newest()[0] != number:
                file_system().delete(file)
                raise FileExistsError(file)
        except FileExistsError:
            file_system().delete(str(self._own_folder))
            raise

    def renew(self, number: int) -> None:
        """Touch the file. Raises `FileNotFoundError` if another driver has deleted it."""
        file_system().touch(f"{self._folder}/{number}")

    def release(self, number: int) -> None:
        """Create the mark of a release. Raises `OSError`."""
        file_system().create(f"{self._folder}/{number}{_RELEASED}", b"")

    def fence_former(self, number: int) -> RenameFence:
        """Rename the folders of former leases, through which their drivers make changes, and delete their files.

        `create` has been called with this number.
        """
        former = self._checkpoint / OWN / "aside"
        names = [path.name for path in self._folder.iterdir()]
        former.mkdir()
        for name in names:
            former_number = name.partition(".")[0]
            if not former_number.isdigit() or int(former_number) >= number:
                continue
            if name.endswith(_CHANGES):
                target = former / f"lease-{name.removesuffix(_CHANGES)}"
                # Another driver that took over and died may have done so.
                with suppress(FileNotFoundError):
                    file_system().rename(f"{self._folder}/{name}", str(target))
                _delete_drafts(target)
        for name in names:
            if name.partition(".")[0].isdigit() and int(name.partition(".")[0]) < number:
                file_system().delete(f"{self._folder}/{name}")
        return RenameFence(str(self._checkpoint), str(self._own_folder))


def _delete_drafts(folder: RemotePath) -> None:
    """Delete what a former driver was about to put in place or to delete. What it was moving stays."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return
    if all(name.startswith((DRAFT, DELETED)) for name in names):
        file_system().delete(str(folder))
