"""Class-data archives: the JVM maps the classes of an earlier run instead of loading them again.

An archive fits one Java and one class path; it is made once, by `train`, in the background. It halves
the time to the first batch. The JVM refuses one that does not fit and starts without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from millstream.runtime import home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.runtime.java import Java

# An archive weighs about 190 MB; two serve a person who moves between two Javas or versions.
KEPT = 2

# After a training that failed, the next one waits this long, in seconds.
REST = 86_400.0

# Runs the rest of its arguments in the background, as a child of nobody, at the lowest priority.
DETACH = 'nice -n 19 "$@" </dev/null >/dev/null 2>&1 &'


def archive_file(java: Java, class_path: Sequence[Path]) -> Path | None:
    """Where the archive for this Java and class path stands, or would; None when there can be none.

    MILLSTREAM_ARCHIVE=off means none; MILLSTREAM_ARCHIVE=use takes one that is there and makes none.
    """
    if os.environ.get("MILLSTREAM_ARCHIVE") == "off":
        return None
    if any(path.is_dir() for path in class_path):
        return None  # the JVM archives jars only, and HADOOP_CONF_DIR is a folder
    parts = [_identity(java), *map(str, class_path)]
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    return home.folder("archives") / f"{name}.jsa"


def flags(archive: Path | None) -> tuple[str, ...]:
    """The JVM's options to use the archive, none when it is not there."""
    if archive is None or not _whole(archive):
        return ()
    with contextlib.suppress(OSError):
        os.utime(archive)
    # Without its sums checked (0.1 s), a JVM maps a damaged archive and dies of it later.
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-XX:+VerifySharedSpaces")


def discard(archive: Path) -> None:
    """Remove an archive with which the JVM did not start, so that a better one is made."""
    archive.unlink(missing_ok=True)
    archive.with_suffix(".size").unlink(missing_ok=True)


def train_later(archive: Path | None) -> None:
    """Make the archive in a background process that outlives this one; not on a CI machine."""
    unwanted = os.environ.get("CI") or os.environ.get("MILLSTREAM_ARCHIVE") == "use"
    if archive is None or unwanted or _whole(archive) or _failed_lately(archive):
        return
    command = [sys.executable, "-m", "millstream.runtime.train", str(archive)]
    subprocess.run(["/bin/sh", "-c", DETACH, "sh", *command], check=False, start_new_session=True)


def adopt(draft: Path, archive: Path) -> None:
    """Put a finished draft into its place, and remove archives that were not used for longest."""
    draft.chmod(0o600)
    archive.with_suffix(".size").write_text(str(draft.stat().st_size))
    draft.replace(archive)
    by_use = sorted(archive.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_use[KEPT:]:
        discard(old)


def _whole(archive: Path) -> bool:
    """Has the archive the size it was adopted with? The JVM does not survive one that was cut short."""
    try:
        return archive.stat().st_size == int(archive.with_suffix(".size").read_text())
    except (OSError, ValueError):
        return False


def _failed_lately(archive: Path) -> bool:
    try:
        return time.time() - archive.with_suffix(".tried").stat().st_mtime < REST
    except FileNotFoundError:
        return False


def _identity(java: Java) -> str:
    """What tells one build of Java from another."""
    binary = java.binary.resolve()
    with contextlib.suppress(OSError):
        return f"{binary}\n{(java.home / 'release').read_text()}"
    return f"{binary}\n{java.version}"
