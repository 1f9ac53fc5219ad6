"""Let one process of this machine at a time commit to a Delta table in a local folder."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import Outage
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

# Next to `_delta_log`. Readers use the log; VACUUM, in Spark and in delta-rs, ignores names with an underscore.
LOCK_FILE = "_millstream_lock"
WRITING_LOCK_FILE = "_millstream_writing_lock"
"""Held while files of a table of dead letters are written that are committed later, under the other lock."""

# Seconds. Checking the lock costs microseconds. Another process releases it for about ten milliseconds or more
# between two commits, while it writes its checkpoint.
INTERVAL = 0.005
# Seconds that a very large merge may take. After that the wait is reported, and starts again with the next attempt.
PATIENCE = 600.0
# File systems without locks behave as if the lock were free.
_NO_LOCKS = frozenset({errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK})


@contextmanager
def commit_lock(
    folder: Path | None, pause: Callable[[float], object] = time.sleep, name: str = LOCK_FILE
) -> Iterator[None]:
    """Hold the lock of the table in `folder` inside the `with`; no lock if `folder` is None, for a remote table.

    On a local disk, Spark's Delta checks whether version N of the log exists and then renames its own file to that
    name, which replaces a version written in between. Within one JVM the two are one step; between processes they are
    not. The kernel releases the lock if its owner dies. It is not reentrant, and also excludes threads.

    `pause` waits for some seconds, and raises to give up. Raises `Outage` if the lock was not free for ten minutes,
    and `OSError` if the folder cannot be written.
    """
    if folder is None:
        yield
        return
    handle = _acquire(folder, pause, name)
    try:
        yield
    finally:
        os.close(handle)


def interruptible_pause(spark: SparkSession) -> Callable[[float], object]:
    """Return a pause that raises `InterruptedException` when Spark stops the query of this thread's batch.

    Spark's query thread waits while the Python function of a batch runs, and executes the function's JVM calls, so
    the interrupt arrives there.
    """
    # Resolved at the first wait: each name on the way is a call to the JVM, and most commits do not wait.
    return lambda seconds: internals.jvm(spark).java.lang.Thread.sleep(int(seconds * 1000))


def _acquire(folder: Path, pause: Callable[[float], object], name: str) -> int:
    """Return the descriptor of the locked lock file."""
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + PATIENCE
    while True:
        handle = _open(folder / name)
        try:
            while not _try_lock(handle):
                if time.monotonic() > deadline:
                    raise Outage(
                        f"process {_owner(handle)} has been committing to Delta table {folder} for "
                        f"{PATIENCE / 60:.0f} minutes",
                        "check what it is doing, and end it if it is stuck",
                    )
                pause(INTERVAL)
            if _is_in_place(handle, folder / name):
                _sign(handle)
                return handle
        except BaseException:
            os.close(handle)
            raise
        # The table's folder was deleted meanwhile, with the lock file, so that other processes lock another file.
        os.close(handle)
        folder.mkdir(parents=True, exist_ok=True)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        # Another user created the file and also writes to this table; locking needs no write permission.
        return os.open(path, os.O_RDONLY)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _is_in_place(handle: int, path: Path) -> bool:
    try:
        current = path.stat()
    except FileNotFoundError:
        return False
    locked = os.fstat(handle)
    return (current.st_dev, current.st_ino) == (locked.st_dev, locked.st_ino)


def _sign(handle: int) -> None:
    """Write this process's id into the lock file for those that wait."""
    try:
        os.pwrite(handle, f"{os.getpid():<10}\n".encode(), 0)
    except OSError:
        # Another user's file, or a full disk, which the commit itself reports.
        return


def _owner(handle: int) -> str:
    text = os.pread(handle, 20, 0).decode(errors="replace").strip()
    return text if text.isdigit() else "of another user"
