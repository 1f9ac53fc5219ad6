"""The full-disk fault: a small file system under the proof, filled while a driver is in a batch."""

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

    from millstream.proof.environment import ProofRun

# Enough for the checkpoints and tables of a proof (a large one needed 60 MB). The file system is in memory.
MEGABYTES = 256
# The failpoint at which the disk is filled: the offsets are written, and no sink has the batch.
_POINT = "batch.begun"
# Seconds within which a driver that gives up ends after it has reported the reason.
_EXIT_TIMEOUT = 5.0
# The system's message, in Java as in Python.
_DISK_FULL_MESSAGE = "No space left on device"


@dataclass(frozen=True)
class FullDisk:
    """The disk under checkpoints and tables is filled until a driver reports it; then space is freed again."""

    folder: Path
    name: str = "disk-full"

    def play(self, scene: ProofRun) -> None:
        """Check that the driver reports the full disk, and that it or its successor commits a batch afterwards."""
        driver = scene.running("the disk was full", f"{_POINT}=stop")
        scene.feed.extra()
        scene.until(driver, f"it reached {_POINT}", lambda: driver.is_frozen)
        # A file source is on the same disk, so its rows are fed before the disk is full.
        scene.feed.extra()
        filler = self.folder / "filler"
        fill_disk(filler)
        try:
            driver.resume()
            scene.until(
                driver,
                "it had reported the full disk",
                lambda: _reports_full_disk(driver.troubles),
                feeding=False,
            )
        finally:
            filler.unlink()
        if driver.wait(_EXIT_TIMEOUT) is not None:
            driver = scene.drivers.start()
        scene.batches(driver, 1, "a batch after space was freed again")


def fill_disk(file: Path) -> None:
    """Write to a file until its file system is full."""
    with file.open("wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while filler.write(b"\0" * size):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


@contextmanager
def mount_small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system at an empty folder, if this user may; its files stay in the folder afterwards."""
    mounted = _run(
        "mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=700", "millstream-proof", str(folder)
    )
    try:
        yield mounted
    finally:
        if mounted:
            _unmount(folder)


def _unmount(folder: Path) -> None:
    """Unmount the file system, and copy its files into the folder below it."""
    copy = folder.with_name(f"{folder.name}.kept")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, symlinks=True)
    if not _run("umount", str(folder)):
        raise MillstreamError(
            f"the small disk at {folder} could not be unmounted",
            f"as root: umount {folder}; then rm -r {copy}",
        )
    folder.rmdir()
    copy.rename(folder)


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _reports_full_disk(troubles: list[str]) -> bool:
    return any(_DISK_FULL_MESSAGE in trouble for trouble in troubles)
