"""The lease that one driver has of a checkpoint on a remote file system.

A kernel lock ends with its process; no remote file system has one. A lease is a file with the next fencing number,
`_millstream/lease/7`, which only one driver can create, and a folder of that number. The driver touches the file
while it lives. Another one that sees no change for `LAPSE` seconds of its own clock creates number 8 and renames the
folder of 7. All changes of a checkpoint pass through the folder of their lease (`path.py`), so that from then on a
former driver that was only suspended changes nothing. No two clocks are compared.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.remote.file_system import SCHEMES, file_system
from millstream.checkpoint.remote.path import DELETED, DRAFT, RemotePath, remove_fence, set_fence
from millstream.diagnostics.failure import CheckpointError, NotReady

if TYPE_CHECKING:
    from collections.abc import Sequence

# A driver that is replaced within seconds must have failed to reach the file system five times in a row.
RENEWAL = 3.0
LAPSE = 15.0
_POLL = 0.5
_RELEASED = ".released"

_leases: dict[str, Lease] = {}


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
        self._roots = (checkpoint, *also)
        self._renewal, self._lapse = renewal, lapse
        self._confirmed_at = 0.0
        self._successor: str | None = None
        self._released = threading.Event()

    @property
    def _folder(self) -> RemotePath:
        return _lease_folder(self.checkpoint) / f"{self.number}.files"

    def take(self) -> None:
        """Take the lease, once the former driver has released it, has ended or has let it lapse.

        Raises `CheckpointError` with the name of its owner if that renews it.
        """
        folder = _lease_folder(self.checkpoint)
        folder.mkdir()
        while True:
            newest, is_released = _find_newest(self.checkpoint)
            if newest is not None and not is_released:
                self._await_lapse(newest)
            self.number = 0 if newest is None else newest + 1
            began = _now()
            # Two drivers may have waited for one lapse. The slower one finds the other's lease in the next round.
            with suppress(FileExistsError):
                file_system().create(str(folder / str(self.number)), json.dumps(self._describe()).encode())
                break
        self._fence_former_drivers()
        self._folder.mkdir()
        for root in self._roots:
            set_fence(root, self._folder)
        self._confirmed_at = began
        _leases[str(self.checkpoint)] = self
        threading.Thread(target=self._renew, name=f"lease of {self.owner}", daemon=True).start()

    def release(self) -> None:
        """Release the lease, so that the next driver need not wait. Does nothing if another one has taken over."""
        self._released.set()
        _leases.pop(str(self.checkpoint), None)
        for root in self._roots:
            remove_fence(root)
        # The next driver waits if the file system, or Spark with its client, is gone.
        with suppress(OSError):
            file_system().create(f"{_lease_folder(self.checkpoint)}/{self.number}{_RELEASED}", b"")

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
            "keep that run; two runs of one query never both write",
        )

    def find_successor(self) -> str | None:
        """Ask the file system, and describe the driver that has taken over. None if this lease still counts.

        Raises `OSError` if that is unknown.
        """
        if self._successor is None:
            self._confirm()
        return self._successor

    def _confirm(self) -> None:
        """Renew the lease. This is one operation of the file system, which fails once another driver has it."""
        began = _now()
        try:
            file_system().touch(f"{_lease_folder(self.checkpoint)}/{self.number}")
        except FileNotFoundError:
            newest, _ = _find_newest(self.checkpoint)
            self._successor = _describe(self.checkpoint, newest)
        else:
            self._confirmed_at = began

    def _renew(self) -> None:
        while self._successor is None and not self._released.wait(self._renewal):
            # The file system may be away for a while. Nothing is written meanwhile: see `require`.
            with suppress(OSError):
                self._confirm()

    def _await_lapse(self, number: int) -> None:
        """Return once a lease has lapsed or its driver has ended. Raises `CheckpointError` if it is renewed."""
        if _has_ended(_read_owner(self.checkpoint, number)):
            return
        first, began = _changed(self.checkpoint, number), _now()
        while first is not None and _now() - began < self._lapse:
            # No event tells of a lapse.
            time.sleep(min(_POLL, self._lapse / 10))
            changed = _changed(self.checkpoint, number)
            if changed is not None and changed != first:
                break
            if changed is None or _find_newest(self.checkpoint) != (number, False):
                return
            if _has_ended(_read_owner(self.checkpoint, number)):
                return
        else:
            return
        raise CheckpointError(
            f"checkpoint {self.checkpoint} is held by {_describe(self.checkpoint, number)}",
            "stop that run first; two runs on one checkpoint would each write its batches",
        )

    def _fence_former_drivers(self) -> None:
        """Rename the folders of former leases, through which their drivers make changes, and delete their files."""
        folder, former = _lease_folder(self.checkpoint), self.checkpoint / "_millstream" / "aside"
        names = [path.name for path in folder.iterdir()]
        former.mkdir()
        for name in names:
            number = name.partition(".")[0]
            if not number.isdigit() or int(number) >= self.number:
                continue
            if name.endswith(".files"):
                target = former / f"lease-{number}"
                # Another driver that took over and died may have done so.
                with suppress(FileNotFoundError):
                    file_system().rename(f"{folder}/{name}", str(target))
                _delete_drafts(target)
        for name in names:
            if name.partition(".")[0].isdigit() and int(name.partition(".")[0]) < self.number:
                file_system().delete(f"{folder}/{name}")

    def _describe(self) -> dict[str, Any]:
        return {
            "owner": self.owner,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": _machine(),
            "client": file_system().client_process(),
        }


def require_supported(checkpoint: RemotePath) -> None:
    """Raise `NotReady` if the file system of a checkpoint cannot keep a lease."""
    scheme = str(checkpoint).partition("://")[0]
    if scheme not in SCHEMES:
        raise NotReady(
            f"checkpoint {checkpoint} is on '{scheme}', where a run cannot lock it",
            "name a local or mounted folder, or one on hdfs://, in defaults.checkpoints",
        )


def held_lease(checkpoint: RemotePath) -> Lease | None:
    """Return the lease of this process on a checkpoint, or None."""
    return _leases.get(str(checkpoint))


def empty_checkpoint(checkpoint: RemotePath) -> None:
    """Delete everything in a checkpoint of which this process has the lease, but the lease.

    Its number must not be used again: a suspended driver may still have it.
    """
    own = checkpoint / "_millstream"
    for path in (*checkpoint.glob("*"), *own.glob("*")):
        if path not in (own, _lease_folder(checkpoint)):
            path.delete_all()


def find_owner(checkpoint: RemotePath) -> str | None:
    """Describe the driver with the newest lease, or None if it was released or its process has ended."""
    newest, is_released = _find_newest(checkpoint)
    if newest is None or is_released or _has_ended(_read_owner(checkpoint, newest)):
        return None
    return _describe(checkpoint, newest)


def _lease_folder(checkpoint: RemotePath) -> RemotePath:
    return checkpoint / "_millstream" / "lease"


def _find_newest(checkpoint: RemotePath) -> tuple[int | None, bool]:
    """Return the highest number, and whether its lease was released."""
    try:
        names = {path.name for path in _lease_folder(checkpoint).iterdir()}
    except FileNotFoundError:
        return None, False
    newest = max((int(name) for name in names if name.isdigit()), default=None)
    return newest, f"{newest}{_RELEASED}" in names


def _changed(checkpoint: RemotePath, number: int) -> float | None:
    """Return when a lease was last renewed, by the file system's clock, or None if it is gone."""
    try:
        return (_lease_folder(checkpoint) / str(number)).stat().st_mtime
    except FileNotFoundError:
        return None


def _read_owner(checkpoint: RemotePath, number: int | None) -> dict[str, Any]:
    """Return what the owner wrote. Empty if it has just created its lease, or if another one has deleted it."""
    try:
        owner = json.loads((_lease_folder(checkpoint) / str(number)).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _describe(checkpoint: RemotePath, number: int | None) -> str:
    owner = _read_owner(checkpoint, number)
    if not owner:
        return "another run that has just begun"
    return f"'{owner.get('owner')}' (process {owner.get('pid')} on {owner.get('host')}, since {owner.get('since')})"


def _has_ended(owner: dict[str, Any]) -> bool:
    """Return whether both processes of a driver on this machine have ended. False for another machine's."""
    if not owner or owner.get("machine") != _machine():
        return False
    processes = [process for process in (owner.get("pid"), owner.get("client")) if process is not None]
    return not any(_is_alive(int(process)) for process in processes)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        # A process whose parent has not asked for its exit code is listed and does nothing.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        return True


def _machine() -> str:
    """Identify the running kernel and the namespace of process ids, which equally named containers do not share."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115 - the link's text, which is no path
    except OSError:
        return f"{socket.gethostname()} {os.getpid()}"


def _delete_drafts(folder: RemotePath) -> None:
    """Delete what a former driver was about to put in place or to delete. What it was moving stays."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return
    if all(name.startswith((DRAFT, DELETED)) for name in names):
        file_system().delete(str(folder))


def _now() -> float:
    """Return seconds of a clock that also counts while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
