"""Provide the jars that Spark needs in addition: locked by sha256, downloaded once, verified, in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from millstream.diagnostics.failure import NotReady
from millstream.spark import cache_folder
from millstream.spark.jars import ivy_download

REQUIRED = ("spark", "broker")
"""The groups that every run and every local stack needs. The others are fetched when they are first used."""
LOCK = Path(__file__).with_name("jars.lock")

Progress = Callable[[str], None]
"""Receives a short text on the current step whenever it changes."""


@dataclass(frozen=True)
class Jar:
    """One locked jar: Maven coordinates `organisation:name:version`, size in bytes, sha256 in hex."""

    at: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """The file name in the cache."""
        _, name, version = self.at.split(":")
        return f"{name}-{version}.jar"


@cache
def locked_jars() -> dict[str, tuple[Jar, ...]]:
    """Return the jars of each group, in the lock's order."""
    groups = tomllib.loads(LOCK.read_text())
    return {
        group: tuple(Jar(at, **facts) for at, facts in entries.items()) for group, entries in groups.items()
    }


def jar_paths(group: str) -> list[Path]:
    """Return the paths of the group's jars once they are downloaded."""
    folder = _packaged_folder(group)
    if folder is not None:
        return [folder / jar.file for jar in locked_jars()[group]]
    return [cache_folder.cache_home() / "jars" / jar.file for jar in locked_jars()[group]]


def is_cached(group: str) -> bool:
    """Return whether each jar of the group is cached, with the size and time at which it was verified."""
    return _packaged_folder(group) is not None or not _find_unverified(
        cache_folder.cache_home() / "jars", locked_jars()[group]
    )


def ensure_jars(group: str, progress: Progress | None = None, *, verify: bool = False) -> list[Path]:
    """Return the group's jars ("spark", "broker" or "hdfs") as local files, downloaded and verified if needed.

    A verified jar is trusted by its size and modification time. `verify` hashes each again. Two processes may call
    this at the same time. Raises NotReady if a jar cannot be downloaded, or is not the locked one. Jars in the folder
    that MILLSTREAM_JARS names are used where they are; that folder is only read.
    """
    report = progress or _ignore_progress
    packaged = _packaged_folder(group)
    if packaged is not None:
        return _verify_packaged(packaged, group)
    if not verify and is_cached(group):
        return jar_paths(group)
    folder = cache_folder.create_folder("jars")
    with _lock_cache(folder, report):
        jars = locked_jars()[group]
        doubtful = jars if verify else _find_unverified(folder, jars)
        invalid = [jar for jar in doubtful if not _is_locked_jar(folder / jar.file, jar, report)]
        if invalid:
            _download(folder, invalid, report)
        _write_stamps(folder, jars)
    return jar_paths(group)


def _packaged_folder(group: str) -> Path | None:
    """Return the folder of MILLSTREAM_JARS if any jar of the group is there, else None."""
    value = os.environ.get("MILLSTREAM_JARS")
    folder = Path(value).expanduser() if value else None
    if folder is None or not any((folder / jar.file).is_file() for jar in locked_jars()[group]):
        return None
    return folder


@cache
def _verify_packaged(folder: Path, group: str) -> list[Path]:
    """Return the jars of a package once each is verified: once per process, because the folder may be read-only."""
    for jar in locked_jars()[group]:
        path = folder / jar.file
        if not path.is_file():
            raise NotReady(f"{jar.file} is not in {folder}", "unpack the package again")
        if path.stat().st_size != jar.size or digest(path) != jar.sha256:
            raise NotReady(
                f"the jar {path} is refused: its checksum is not the expected one",
                "unpack the package again, or create a new one with 'millstream package'",
            )
    return jar_paths(group)


def _ignore_progress(text: str) -> None:
    """Ignore progress."""


def _download(folder: Path, jars: list[Jar], report: Progress) -> None:
    """Download the jars in one call of Ivy, verify each, and move them into the cache."""
    size = sum(jar.size for jar in jars)
    with ivy_download.download_jars([jar.at for jar in jars], folder, size, report) as staged:
        for jar in jars:
            draft = staged / jar.file
            if not draft.is_file():
                raise NotReady(
                    f"the jar {jar.at} could not be downloaded",
                    "check the network, or name a mirror's Ivy settings in MILLSTREAM_IVY_SETTINGS",
                )
            sha256 = digest(draft)
            if sha256 != jar.sha256:
                raise NotReady(
                    f"{jar.file} is refused: the repository returned a file with the SHA-256 checksum "
                    f"{sha256[:16]}…, but {jar.sha256[:16]}… is expected",
                    "the repository or mirror serves a different file under this name; ask its administrator",
                )
        for jar in jars:
            (staged / jar.file).replace(folder / jar.file)


def _is_locked_jar(path: Path, jar: Jar, report: Progress) -> bool:
    """Return whether the file is the locked jar, by its bytes. Reports a wrong one."""
    if not path.is_file():
        return False
    if path.stat().st_size == jar.size and digest(path) == jar.sha256:
        return True
    report(f"{jar.file} in the cache is not the locked one: it is refused and fetched again")
    return False


def _find_unverified(folder: Path, jars: tuple[Jar, ...]) -> tuple[Jar, ...]:
    """Return the jars without a matching stamp, which were never verified or have changed since."""
    try:
        stamps = json.loads((folder / "verified.json").read_text())
    except (OSError, ValueError):
        return jars
    stats = {jar: _stat_mark(folder / jar.file, jar) for jar in jars}
    # A missing jar has no mark, and must not pass for a jar that has no stamp either.
    return tuple(jar for jar, mark in stats.items() if mark is None or stamps.get(jar.file) != mark)


def _stat_mark(path: Path, jar: Jar) -> list[object] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return [jar.sha256, status.st_size, status.st_mtime_ns] if status.st_size == jar.size else None


def _write_stamps(folder: Path, verified: tuple[Jar, ...]) -> None:
    """Record size and time of verified jars. The caller has the lock."""
    stamps: dict[str, object] = {}
    try:
        stamps = json.loads((folder / "verified.json").read_text())
    except (OSError, ValueError):
        stamps = {}
    stamps |= {jar.file: _stat_mark(folder / jar.file, jar) for jar in verified}
    draft = folder / f"verified.{os.getpid()}"
    draft.write_text(json.dumps(stamps, indent=1))
    draft.replace(folder / "verified.json")


def digest(path: Path) -> str:
    """Return the sha256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _lock_cache(folder: Path, report: Progress) -> Iterator[None]:
    """Lock the cache within this context. The system releases the lock when the process ends, in whatever way."""
    with (folder / "lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that is fetching jars")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
