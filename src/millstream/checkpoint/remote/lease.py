"""The lease that one driver has of a checkpoint on a remote file system.

A kernel lock ends with its process; no remote file system has one. A lease has a number, which only one driver can
take (`lease_files.py` on HDFS, `object_lease.py` on S3). The driver renews it while it lives. Another one that sees
no change for `LAPSE` seconds of its own clock takes the next number. All changes of a checkpoint are made by the
fence of its lease (`fence.py`, `own_files.py`), so that from then on a former driver that was only suspended changes
nothing. No two clocks are compared.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from millstream.checkpoint.remote.fence import remove_fence, set_fence
from millstream.checkpoint.remote.file_system import OBJECT_STORES, SCHEMES
from millstream.checkpoint.remote.lease_files import LeaseFiles
from millstream.checkpoint.remote.lease_owner import describe_owner, describe_self, has_ended
from millstream.checkpoint.remote.object_lease import OWN
from millstream.checkpoint.remote.own_files import FencedObjectLease
from millstream.checkpoint.remote.store_check import require_conditional_writes
from millstream.diagnostics.failure import CheckpointError, NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.checkpoint.remote.fence import Fence
    from millstream.checkpoint.remote.path import RemotePath

# A driver that is replaced within seconds must have failed to reach the file system five times in a row.
RENEWAL = 3.0
LAPSE = 15.0
_POLL = 0.5

_leases: dict[str, Lease] = {}


class LeaseStore(Protocol):
    """How a file system keeps the lease of one checkpoint."""

    def find_newest(self) -> tuple[int | None, bool]:
        """Return the newest number, None before the first, and whether that lease was released."""

    def find_mark(self, number: int) -> object | None:
        """Return a value that changes with each renewal, or None if the lease of this number is gone."""

    def read_owner(self, number: int | None) -> dict[str, Any]:
        """Return what the owner of a lease wrote. Empty if it is gone or has just been created."""

    def create(self, number: int, owner: dict[str, Any]) -> None:
        """Take the lease with the next number. Raises `FileExistsError` if another driver was faster."""

    def renew(self, number: int) -> None:
        """Renew the lease. Raises `FileNotFoundError` if another driver has it."""

    def fence_former(self, number: int) -> Fence:
        """Let changes of former drivers have no effect, and return the fence for those of this one."""

    def release(self, number: int) -> None:
        """Let the next driver take the lease at once. Raises `OSError`."""


class Lease:
    """The lease of this process on a checkpoint. `also` are folders next to it that it covers too."""

    def __init__(
        self,
        checkpoint: RemotePath,
        owner: str,
        also: Sequence[RemotePath] = (),
        *,
        renewal: float = RENEWAL,
        lapse: float = LAPSE,
    ) -> None:
        self.checkpoint, self.owner, self.number = checkpoint, owner, 0
        self._roots = [str(root) for root in (checkpoint, *also)]
        self._store = _open_store(checkpoint)
        self._renewal, self._lapse = renewal, lapse
        self._confirmed_at = 0.0
        self._successor: str | None = None
        self._released = threading.Event()

    def take(self) -> None:
        """Take the lease, once the former driver has released it, has ended or has let it lapse.

        Raises `CheckpointError` with the name of its owner if that renews it.
        """
        while True:
            newest, is_released = self._store.find_newest()
            if newest is not None and not is_released:
                self._await_lapse(newest)
            self.number = 0 if newest is None else newest + 1
            began = _now()
            # Two drivers may have waited for one lapse. The slower one finds the other's lease in the next round.
            with suppress(FileExistsError):
                self._store.create(self.number, describe_self(self.owner))
                break
        self._confirmed_at = began
        _leases[str(self.checkpoint)] = self
        # It is renewed while files are taken over, which may take longer than a lapse.
        threading.Thread(target=self._renew, name=f"lease of {self.owner}", daemon=True).start()
        try:
            fence = self._store.fence_former(self.number)
        except BaseException:
            self.release()
            raise
        for root in self._roots:
            set_fence(root, fence)

    def release(self) -> None:
        """Release the lease, so that the next driver need not wait. Does nothing if another one has taken over."""
        self._released.set()
        _leases.pop(str(self.checkpoint), None)
        for root in self._roots:
            remove_fence(root)
        # The next driver waits if the file system, or Spark with its client, is gone.
        with suppress(OSError):
            self._store.release(self.number)

    def require(self) -> None:
        """Raise `CheckpointError` if another driver has taken over, and `OSError` if that is unknown.

        Asks the file system if the lease was not renewed for so long that another driver may have it.
        """
        if self._successor is None and _now() - self._confirmed_at > self._lapse:
            self._confirm()
        if (loss := self.find_loss()) is not None:
            raise loss

    def find_loss(self) -> CheckpointError | None:
        """Return the error of `require` if a renewal has found that another driver has taken over."""
        if self._successor is None:
            return None
        return CheckpointError(
            f"checkpoint {self.checkpoint} has been taken over by {self._successor}",
            "keep that run; two runs of a query must not both write",
        )

    def find_successor(self) -> str | None:
        """Ask the file system, and describe the driver that has taken over. None if this lease still counts.

        Raises `OSError` if that is unknown.
        """
        if self._successor is None:
            self._confirm()
        return self._successor

    def _confirm(self) -> None:
        """Renew the lease. The file system decides in one operation, which fails once another driver has it."""
        began = _now()
        try:
            self._store.renew(self.number)
        except FileNotFoundError:
            self._successor = self._describe_newest()
        else:
            self._confirmed_at = began

    def _describe_newest(self) -> str:
        store = _open_store(self.checkpoint)
        newest, _ = store.find_newest()
        return describe_owner(store.read_owner(newest))

    def _renew(self) -> None:
        while self._successor is None and not self._released.wait(self._renewal):
            # The file system may be away for a while. Nothing is written meanwhile: see `require`.
            with suppress(OSError):
                self._confirm()

    def _await_lapse(self, number: int) -> None:
        """Return once a lease has lapsed or its driver has ended. Raises `CheckpointError` if it is renewed."""
        if has_ended(self._store.read_owner(number)):
            return
        first, began = self._store.find_mark(number), _now()
        while first is not None and _now() - began < self._lapse:
            # No event tells of a lapse.
            time.sleep(min(_POLL, self._lapse / 10))
            if self._store.find_newest() != (number, False) or has_ended(self._store.read_owner(number)):
                return
            # The last question before `create`, which takes the lease on condition that this is unchanged.
            mark = self._store.find_mark(number)
            if mark is None:
                return
            if mark != first:
                break
        else:
            return
        raise CheckpointError(
            f"checkpoint {self.checkpoint} is held by {describe_owner(self._store.read_owner(number))}",
            "stop that run first; two runs with the same checkpoint would both write its batches",
        )


def require_supported(checkpoint: RemotePath) -> None:
    """Raise `NotReady` if the file system of a checkpoint cannot keep a lease. Asks an object store, once."""
    scheme = str(checkpoint).partition("://")[0]
    if scheme in OBJECT_STORES:
        require_conditional_writes(str(checkpoint))
    elif scheme not in SCHEMES:
        raise NotReady(
            f"checkpoint {checkpoint} is on '{scheme}', where a run cannot lock it",
            "name a local or mounted folder, or one on hdfs:// or s3a://, in defaults.checkpoints",
        )


def held_lease(checkpoint: RemotePath) -> Lease | None:
    """Return the lease of this process on a checkpoint, or None."""
    return _leases.get(str(checkpoint))


def empty_checkpoint(checkpoint: RemotePath) -> None:
    """Delete everything in a checkpoint of which this process has the lease, but the lease.

    Its number must not be used again: a suspended driver may still have it. Raises `InvalidInput` on an object store.
    """
    own = checkpoint / OWN
    for path in (*checkpoint.glob("*"), *own.glob("*")):
        if path not in (own, own / "lease"):
            path.delete_all()


def find_owner(checkpoint: RemotePath) -> str | None:
    """Describe the driver with the newest lease, or None if it was released or its process has ended."""
    store = _open_store(checkpoint)
    newest, is_released = store.find_newest()
    if newest is None or is_released:
        return None
    owner = store.read_owner(newest)
    return None if has_ended(owner) else describe_owner(owner)


def _open_store(checkpoint: RemotePath) -> LeaseStore:
    return FencedObjectLease(str(checkpoint)) if checkpoint.is_object else LeaseFiles(checkpoint)


def _now() -> float:
    """Return seconds of a clock that also counts while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
