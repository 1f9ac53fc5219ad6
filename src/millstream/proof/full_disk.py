"""A disk that is full: a small file system of the proof's own, filled while a driver is in a batch."""

from __future__ import annotations

import errno
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.diagnostics.failure import MillstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.proof.scene import Scene

# Room for the checkpoints and tables of a proof, of which a large one was seen to leave 60 MB; held in memory.
MEGABYTES = 256
# The point at which it is filled: the offsets are written, and no sink has the batch.
_POINT = "batch.begun"
# A driver that gives up ends within so many seconds after it has said why.
_LAST = 5.0
# What the system calls it, in Java as in Python.
_FULL = "No space left on device"


@dataclass(frozen=True)
class FullDisk:
    """The disk under checkpoints and tables is filled, until a driver says so; then there is room again."""

    folder: Path
    name: str = "disk-full"

    def play(self, scene: Scene) -> None:
        """It says what is wrong; once there is room, it or its successor commits another batch."""
        driver = scene.running("the disk was full", f"{_POINT}=stop")
        scene.feed.extra()
        scene.until(driver, f"it reached {_POINT}", lambda: driver.frozen)
        # A source of files lies on the same disk: its rows come before that is full.
        scene.feed.extra()
        filler = self.folder / "filler"
        fill(filler)
        try:
            driver.thaw()
            scene.until(driver, "it had told of the full disk", lambda: _said(driver.troubles), feeding=False)
        finally:
            filler.unlink()
        if driver.wait(_LAST) is not None:
            driver = scene.drivers.start()
        scene.batches(driver, 1, "a batch after there was room again")


def fill(file: Path) -> None:
    """Write until nothing more fits onto its file system."""
    with file.open("wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while filler.write(b"\0" * size):
                    pass
            except OSError as full:
                if full.errno != errno.ENOSPC:
                    raise


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A small file system at an empty folder, if this user may mount one; what it holds stays there afterwards."""
    mounted = _run(
        "mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=700", "millstream-proof", str(folder)
    )
    try:
        yield mounted
    finally:
        if mounted:
            _unmount(folder)


def _unmount(folder: Path) -> None:
    """Take the file system away, with its files copied into the folder below it."""
    kept = folder.with_name(f"{folder.name}.kept")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept, symlinks=True)
    if not _run("umount", str(folder)):
        raise MillstreamError(
            f"the small disk at {folder} could not be taken away",
            f"as root: umount {folder}; then rm -r {kept}",
        )
    folder.rmdir()
    kept.rename(folder)


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _said(troubles: list[str]) -> bool:
    return any(_FULL in trouble for trouble in troubles)
