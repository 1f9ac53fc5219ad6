"""Lock a checkpoint for one run. The lock names its owner and is released when the owner ends."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import time
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from millstream.checkpoint.private_folder import make_private
from millstream.checkpoint.remote import lease
from millstream.checkpoint.remote.lease import Lease, require_supported
from millstream.checkpoint.remote.path import CheckpointPath, RemotePath
from millstream.checkpoint.replacement import finish_replacement
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType


# A JVM whose Python process was killed runs its shutdown hooks, which stop Spark, and ends within seconds.
JVM_ENDS = 60.0
_POLL_SECONDS = 0.1
# Process ids and host names identify a process only on one machine: two containers may have the same of both.
_TOKEN = secrets.token_hex(8)


class CheckpointLock:
    """The lock of one process on a checkpoint folder. It is a kernel lock, so `kill -9` of the owner releases it.

    On a remote file system it is a `Lease`, which also covers the folders of `also`.

    A run is two processes. If Python dies alone, its JVM lives some seconds longer and may finish a write that it has
    begun. So the JVM has its own lock (`jvm_lock_file`), and `take` waits for that lock too.
    """

    def __init__(self, folder: CheckpointPath, owner: str, also: Sequence[CheckpointPath] = ()) -> None:
        self.owner = owner
        self.folder = folder
        self._also = [path for path in also if isinstance(path, RemotePath)]
        self._handle: IO[str] | None = None
        self._lease: Lease | None = None

    def take(self) -> None:
        """Take the lock once the JVM of an earlier run has ended, and close the folder to other users.

        Raises `CheckpointError` with the name of the owner if another run has the lock, or if such a JVM does not
        end.
        """
        if isinstance(self.folder, RemotePath):
            require_supported(self.folder)
            make_private(self.folder)
            self._lease = Lease(self.folder, self.owner, self._also)
            self._lease.take()
        else:
            self._take_file(self.folder)

    def _take_file(self, folder: Path) -> None:
        finish_replacement(folder)
        make_private(folder)
        file = lock_file(folder)
        file.parent.mkdir(exist_ok=True)
        handle = os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            owner_json = handle.read()
            handle.close()
            raise CheckpointError(
                f"checkpoint {folder} is held by {_describe_owner(owner_json)}",
                "stop that run first; two runs with the same checkpoint would both write its batches",
            ) from error
        try:
            self._await_jvm(folder)
        except CheckpointError:
            handle.close()
            raise
        handle.truncate(0)
        json.dump(
            {
                "owner": self.owner,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "token": _TOKEN,
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
            },
            handle,
        )
        handle.flush()
        self._handle = handle

    def _await_jvm(self, folder: Path) -> None:
        """Wait until no JVM that outlived its Python process has the checkpoint locked.

        If the JVM's Python process is alive, its lock file was deleted. Sinks fence it out when this run claims them.
        """
        file = jvm_lock_file(folder)
        deadline = time.monotonic() + JVM_ENDS
        while file.exists() and not _is_free(file) and not _has_driver(file):
            if time.monotonic() > deadline:
                process = file.read_text().partition(" ")[0]
                raise CheckpointError(
                    f"the JVM of an earlier run with checkpoint {folder} is still running (process {process}), "
                    f"and may still write to the sinks",
                    f"end it: kill -9 {process}",
                )
            # No event tells that a process that is not a child has ended.
            time.sleep(_POLL_SECONDS)

    def release(self) -> None:
        """Release the lock. Does nothing if it is not taken."""
        if self._handle is not None:
            self._handle.truncate(0)
            self._handle.close()
            self._handle = None
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def __enter__(self) -> CheckpointLock:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_file(folder: Path) -> Path:
    """Return the file that a run's Python process locks while it lives."""
    return folder / "_millstream" / "lock"


def jvm_lock_file(folder: Path) -> Path:
    """Return the file that a run's JVM locks while it lives, as Java does (POSIX).

    It contains the process ids of that JVM and of the Python process that started it.
    """
    return folder / "_millstream" / "jvm.lock"


def _is_free(file: Path) -> bool:
    """Return whether no other process has a POSIX lock on the file."""
    with file.open("r+") as handle:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _has_driver(file: Path) -> bool:
    """Return whether the Python process of the JVM with this lock is alive.

    This process is not: it has no JVM with a lock yet, so the same id is that of a process in an earlier container.
    """
    process = file.read_text().partition(" ")[2]
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (ValueError, OSError):
        return False
    return int(process) != os.getpid()


def find_other_owner(folder: CheckpointPath) -> str | None:
    """Describe the other run that has the lock of a checkpoint, or return None if no other run names itself there.

    A lock file that is deleted while its owner runs or is suspended can be created again by another run. The owner
    then has the lock of a deleted file, and must not start its query again. Raises `OSError` if a remote file system
    does not answer.
    """
    if isinstance(folder, RemotePath):
        own = lease.held_lease(folder)
        return lease.find_owner(folder) if own is None else own.find_successor()
    try:
        owner_json = lock_file(folder).read_text()
        is_ours = _names_this_process(owner_json)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None if is_ours else _describe_owner(owner_json)


def find_owner(folder: CheckpointPath) -> str | None:
    """Describe the process that has the lock of a checkpoint, or return None if none has it.

    A lease that has lapsed has an owner until another run takes it.
    """
    if isinstance(folder, RemotePath):
        return lease.find_owner(folder)
    try:
        with lock_file(folder).open("r+") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _describe_owner(handle.read())
    except OSError:
        return None
    return None


def is_owned(folder: CheckpointPath) -> bool:
    """Return whether the lock of a checkpoint is this process's. False if it is missing or its file is empty."""
    try:
        if isinstance(folder, RemotePath):
            own = lease.held_lease(folder)
            return own is not None and own.find_successor() is None
        return _names_this_process(lock_file(folder).read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def require_owner(folder: CheckpointPath) -> None:
    """Raise `CheckpointError` if another run has taken over the checkpoint."""
    if other_owner := find_other_owner(folder):
        raise CheckpointError(
            f"checkpoint {folder} has been taken over by {other_owner}",
            "stop this run and keep the other; two runs of a query must not both write",
        )


def require_lease(folder: CheckpointPath) -> None:
    """Raise `CheckpointError` as `require_owner` does, at a cost for each batch.

    Costs nothing for a remote checkpoint while its lease is renewed in time. On this machine it reads the lock file.
    """
    if not isinstance(folder, RemotePath):
        require_owner(folder)
    elif (own := lease.held_lease(folder)) is not None:
        own.require()


def find_lost_lease(folder: CheckpointPath) -> CheckpointError | None:
    """Return the error of `require_lease` if it is known without asking the file system."""
    own = lease.held_lease(folder) if isinstance(folder, RemotePath) else None
    return None if own is None else own.find_loss()


def _names_this_process(owner_json: str) -> bool:
    owner = json.loads(owner_json)
    return bool(owner["pid"] == os.getpid() and owner.get("token") == _TOKEN)


def _describe_owner(owner_json: str) -> str:
    """Describe the owner, from what it wrote into the lock file."""
    try:
        owner = json.loads(owner_json)
        return f"'{owner['owner']}' (process {owner['pid']} on {owner['host']}, since {owner['since']})"
    except (ValueError, KeyError, TypeError):
        return "another run that has just begun"
