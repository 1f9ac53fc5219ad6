"""Class-data archives, from which the JVM maps the classes of an earlier run instead of loading them again.

An archive fits one Java and one class path. `train` creates it once, in the background. It halves the time
to the first batch. The JVM rejects an archive that does not fit and starts without it. From Java 25 on it is an AOT
cache, in which the classes are also linked (JEP 483).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from millstream.spark import cache_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from millstream.spark.java_discovery import Java

# Java 24 has AOT caches too, but Spark does not support it.
AOT_CACHES_SINCE = 25
_AOT = ".aot"

# An archive takes about 190 MB, an AOT cache 240. Two are enough for a user who switches between two Javas.
KEPT = 2

# After a failed training, the next one waits this long, in seconds.
REST = 86_400.0

# Runs the remaining arguments in the background at the lowest priority, detached from this process.
DETACH = 'nice -n 19 "$@" </dev/null >/dev/null 2>&1 &'
# The same with standard input passed on, which a shell by default closes for a background process.
ATTACH = 'exec 3<&0; nice -n 19 "$@" <&3 3<&- >/dev/null 2>&1 &'

# Written to an attached trainer, it lets the trainer outlive its starter.
RELEASE = b"\n"

# The write ends of the pipes of attached trainers.
_LEASES: list[int] = []


def archive_file(java: Java, class_path: Sequence[Path]) -> Path | None:
    """Return the path of the archive for this Java and class path, or None if there can be none.

    MILLSTREAM_ARCHIVE=off disables archives. MILLSTREAM_ARCHIVE=use uses an existing one and creates none.
    MILLSTREAM_ARCHIVE=attached creates one in a process that ends with this one.
    """
    if os.environ.get("MILLSTREAM_ARCHIVE") == "off":
        return None
    if not all(path.is_file() for path in class_path):
        return None  # the JVM archives only jars, and HADOOP_CONF_DIR is a folder, or is missing
    # Java 25 runs the classes of an AOT cache even if their jar has been replaced since: it does not look at the jar.
    parts = [_identify_java(java), *map(_identify_jar, class_path)]
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    suffix = _AOT if java.version >= AOT_CACHES_SINCE else ".jsa"
    return cache_folder.create_folder("archives") / f"{name}{suffix}"


def recording_flags(draft: Path, archive: Path) -> tuple[str, ...]:
    """Return the JVM's options to record what it loads: for `archive` itself, or for an AOT cache a configuration."""
    # What lives this briefly does not gain by optimised code.
    quick = "-XX:TieredStopAtLevel=1"
    if archive.suffix == _AOT:
        return (quick, "-XX:AOTMode=record", f"-XX:AOTConfiguration={_configuration(draft)}")
    return (quick, f"-XX:ArchiveClassesAtExit={draft}")


def assembly_flags(draft: Path, archive: Path) -> tuple[str, ...]:
    """Return the options with which a JVM only writes an AOT cache from a configuration; none for another archive."""
    if archive.suffix != _AOT:
        return ()
    return ("-XX:AOTMode=create", f"-XX:AOTConfiguration={_configuration(draft)}", f"-XX:AOTCache={draft}")


def _configuration(draft: Path) -> Path:
    return draft.with_name(f"{draft.name}.config")


def jvm_flags(archive: Path | None) -> tuple[str, ...]:
    """Return the JVM's options to use the archive, or none if it does not exist."""
    if archive is None or not _is_complete(archive):
        return ()
    with contextlib.suppress(OSError):
        os.utime(archive)
    # Verify checksums (0.1 s); otherwise the JVM maps a damaged archive and crashes later.
    verify = "-XX:+VerifySharedSpaces"
    if archive.suffix == _AOT:
        # Java 25 warns about each adapter of a method's call that it does not find in the cache, and creates it.
        return (f"-XX:AOTCache={archive}", verify, "-Xlog:aot*=error:stderr")
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", verify)


def executor_flags(archive: Path | None) -> tuple[str, ...]:
    """Return the options with which an executor on this machine uses the driver's archive, or none.

    An AOT cache is for JVMs with the same modules alone, and Spark starts an executor with one more than the driver.
    """
    return () if archive is None or archive.suffix == _AOT else jvm_flags(archive)


def discard_archive(archive: Path) -> None:
    """Remove an archive with which the JVM did not start, so that a new one is created."""
    archive.unlink(missing_ok=True)
    archive.with_suffix(".size").unlink(missing_ok=True)


def train_later(archive: Path | None) -> None:
    """Create the archive in a background process, which outlives this one unless attached. Skipped on CI."""
    is_disabled = os.environ.get("CI") or os.environ.get("MILLSTREAM_ARCHIVE") == "use"
    if archive is None or is_disabled or _is_complete(archive) or _has_failed_recently(archive):
        return
    command = [sys.executable, "-m", "millstream.spark.cds_training", str(archive)]
    if os.environ.get("MILLSTREAM_ARCHIVE") == "attached":
        _attach([*command, "--attached"])
    else:
        subprocess.run(["/bin/sh", "-c", DETACH, "sh", *command], check=False, start_new_session=True)


def release_training() -> bool:
    """Let the attached trainer of this process outlive it and train as soon as no other command starts.

    Call it when this process has no more work. Returns False if no trainer is left.
    """
    is_released = False
    for lease in _LEASES:
        with contextlib.suppress(BrokenPipeError):
            os.write(lease, RELEASE)
            is_released = True
    return is_released


def announce_start() -> None:
    """Record that a command starts, so that a training in the background ends and leaves it the cores."""
    _start_mark().touch()


def last_start() -> int:
    """Return when a command last started, in nanoseconds since 1970; 0 if none did."""
    try:
        return _start_mark().stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _start_mark() -> Path:
    return cache_folder.create_folder("archives") / "last_start"


def _attach(command: Sequence[str]) -> None:
    """Start a trainer on a pipe that the system closes when this process ends, in whatever way."""
    reading, writing = os.pipe()
    shell = ["/bin/sh", "-c", ATTACH, "sh", *command]
    subprocess.run(shell, stdin=reading, check=False, start_new_session=True)
    os.close(reading)
    _LEASES.append(writing)


def install_archive(draft: Path, archive: Path) -> None:
    """Move a finished draft into its place, and remove the least recently used archives."""
    draft.chmod(0o600)
    archive.with_suffix(".size").write_text(str(draft.stat().st_size))
    draft.replace(archive)
    archives = [path for path in archive.parent.iterdir() if path.suffix in {".jsa", _AOT}]
    by_use = sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_use[KEPT:]:
        discard_archive(old)


def _is_complete(archive: Path) -> bool:
    """Return whether the archive still has its original size. The JVM crashes on a truncated one."""
    try:
        return archive.stat().st_size == int(archive.with_suffix(".size").read_text())
    except (OSError, ValueError):
        return False


def _has_failed_recently(archive: Path) -> bool:
    try:
        return time.time() - archive.with_suffix(".tried").stat().st_mtime < REST
    except FileNotFoundError:
        return False


def _identify_jar(path: Path) -> str:
    """Return a text that changes when the file is replaced."""
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _identify_java(java: Java) -> str:
    """Return a text that identifies one build of Java."""
    binary = java.binary.resolve()
    with contextlib.suppress(OSError):
        return f"{binary}\n{(java.home / 'release').read_text()}"
    return f"{binary}\n{java.version}"
