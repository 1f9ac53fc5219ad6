"""The jars beside Spark's own: locked by sha256, fetched once, verified, kept in the user's cache."""

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
from millstream.runtime import home, ivy

LOCK = Path(__file__).with_name("jars.lock")

Progress = Callable[[str], None]
"""Told what is being done, in a few words, as often as they change."""


@dataclass(frozen=True)
class Jar:
    """One locked jar: Maven coordinates `organisation:name:version`, size in bytes, sha256 in hex."""

    at: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """Its file name in the cache."""
        _, name, version = self.at.split(":")
        return f"{name}-{version}.jar"


@cache
def locked() -> dict[str, tuple[Jar, ...]]:
    """The jars of each group, in the lock's order."""
    groups = tomllib.loads(LOCK.read_text())
    return {
        group: tuple(Jar(at, **facts) for at, facts in entries.items()) for group, entries in groups.items()
    }


def paths(group: str) -> list[Path]:
    """Where the group's jars stand once they are fetched."""
    return [home.home() / "jars" / jar.file for jar in locked()[group]]


def present(group: str) -> bool:
    """Is each jar of the group cached and unchanged in size and time since it was verified?"""
    return not _doubtful(home.home() / "jars", locked()[group])


def ensure(group: str, progress: Progress | None = None, *, verify: bool = False) -> list[Path]:
    """The group's jars ("spark" or "broker") as local files, fetched and verified where needed.

    A jar verified before is taken at its size and modification time; `verify` hashes each again. Two
    processes may call this at once. Raises NotReady when a jar cannot be had, or is not the locked one.
    """
    tell = progress or _quiet
    if not verify and present(group):
        return paths(group)
    folder = home.folder("jars")
    with _alone(folder, tell):
        wanted = locked()[group]
        doubtful = wanted if verify else _doubtful(folder, wanted)
        bad = [jar for jar in doubtful if not _good(folder / jar.file, jar, tell)]
        if bad:
            _fetch(folder, bad, tell)
        _stamp(folder, wanted)
    return paths(group)


def _quiet(text: str) -> None:
    """For a caller who wants no progress."""


def _fetch(folder: Path, wanted: list[Jar], tell: Progress) -> None:
    """Fetch the jars in one call of Ivy, verify each, and move the good ones into the cache."""
    size = sum(jar.size for jar in wanted)
    with ivy.fetched([jar.at for jar in wanted], folder, size, tell) as staged:
        for jar in wanted:
            draft = staged / jar.file
            if not draft.is_file():
                raise NotReady(
                    f"{jar.at} could not be fetched",
                    "look at the network, or name a mirror's Ivy settings in MILLSTREAM_IVY_SETTINGS",
                )
            found = digest(draft)
            if found != jar.sha256:
                raise NotReady(
                    f"{jar.file} is refused: the repository gave sha256 {found[:16]}…, the lock says"
                    f" {jar.sha256[:16]}…",
                    "the repository or mirror serves another file under that name; ask who runs it",
                )
        for jar in wanted:
            (staged / jar.file).replace(folder / jar.file)


def _good(path: Path, jar: Jar, tell: Progress) -> bool:
    """Is this the locked jar, by its bytes? A wrong one is said to be refused."""
    if not path.is_file():
        return False
    if path.stat().st_size == jar.size and digest(path) == jar.sha256:
        return True
    tell(f"{jar.file} in the cache is not the locked one: it is refused and fetched again")
    return False


def _doubtful(folder: Path, wanted: tuple[Jar, ...]) -> tuple[Jar, ...]:
    """The jars with no stamp that fits: never verified, or touched since."""
    try:
        stamps = json.loads((folder / "verified.json").read_text())
    except (OSError, ValueError):
        return wanted
    marks = {jar: _mark(folder / jar.file, jar) for jar in wanted}
    # A jar that is not there has no mark, and must not pass for one that has no stamp either.
    return tuple(jar for jar, mark in marks.items() if mark is None or stamps.get(jar.file) != mark)


def _mark(path: Path, jar: Jar) -> list[object] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return [jar.sha256, seen.st_size, seen.st_mtime_ns] if seen.st_size == jar.size else None


def _stamp(folder: Path, verified: tuple[Jar, ...]) -> None:
    """Remember size and time of what was verified; the caller holds the lock."""
    stamps: dict[str, object] = {}
    try:
        stamps = json.loads((folder / "verified.json").read_text())
    except (OSError, ValueError):
        stamps = {}
    stamps |= {jar.file: _mark(folder / jar.file, jar) for jar in verified}
    draft = folder / f"verified.{os.getpid()}"
    draft.write_text(json.dumps(stamps, indent=1))
    draft.replace(folder / "verified.json")


def digest(path: Path) -> str:
    """The sha256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _alone(folder: Path, tell: Progress) -> Iterator[None]:
    """Hold the cache's lock; the system lets go of it when the process ends, however it ends."""
    with (folder / "lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("waiting for another process that is fetching jars")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
