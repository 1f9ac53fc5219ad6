"""The few things a writer asks of a file system: this machine's own, or any that Hadoop knows."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.spec.location import Location


@dataclass(frozen=True)
class Found:
    """A file below a folder: its path from there, with `/`, and its length in bytes."""

    name: str
    bytes: int


class Place(Protocol):
    """A folder and what is done in it. Names are relative to it, with `/` between their parts."""

    @property
    def renames_folders(self) -> bool:
        """Is a folder with all in it renamed in one step?"""

    def text(self, name: str) -> str | None:
        """What a file says, or None when it does not exist."""

    def create(self, name: str, text: str) -> bool:
        """Make a file that is whole from its first moment; False, and nothing done, when it exists."""

    def exists(self, name: str) -> bool:
        """Is there a file or folder of that name?"""

    def names(self, folder: str) -> list[str]:
        """What stands in a folder; nothing when there is no such folder."""

    def walk(self, folder: str) -> list[Found]:
        """The data files below a folder at any depth, in the order of their names."""

    def settle(self, name: str) -> None:
        """Have a file's bytes on the disk, where that can be asked."""

    def move(self, name: str, to: str) -> None:
        """Give a file another name at once, with the folders that takes. It must not exist there."""

    def publish(self, name: str, to: str) -> bool:
        """Give a folder another name at once; False, and nothing done, when there is one of that name."""

    def keep_only(self, folder: str, names: set[str]) -> None:
        """Take away every file below a folder but these."""

    def remove(self, name: str) -> None:
        """Take away a file, or a folder and all in it; fine when there is none."""


def at(spark: SparkSession, location: Location) -> Place:
    """The place a location means: without a scheme, on the file system that Hadoop is set to."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Hadoop's file systems have no other door
    path = jvm.org.apache.hadoop.fs.Path(str(location))
    system = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    if system.getUri().getScheme() == "file" and location.local is not None:
        return LocalPlace(location.local)
    return HadoopPlace(jvm, system, path)


def writable(location: Location) -> None:
    """Raises `NotReady` when a local folder, or the nearest one above that exists, cannot be written."""
    folder = location.local
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise NotReady(f"'{folder}' is a file, and a folder is to be there", "change the path")
    held = next(above for above in (folder.absolute(), *folder.absolute().parents) if above.exists())
    if not held.is_dir() or not os.access(held, os.W_OK | os.X_OK):
        raise NotReady(
            f"'{held}' cannot be written, and files are to be in '{folder}'",
            "grant the right, or change the path",
        )


class LocalPlace:
    """A folder of this machine. Goes past Hadoop, which starts a process for each file it makes."""

    renames_folders = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def text(self, name: str) -> str | None:
        """What a file says, or None when it does not exist."""
        try:
            return (self.root / name).read_text()
        except FileNotFoundError:
            return None

    def create(self, name: str, text: str) -> bool:
        """Make a file by linking a finished one to its name: a link never replaces."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            with draft.open("x") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        _settle(path.parent)
        return True

    def exists(self, name: str) -> bool:
        """Is there a file or folder of that name?"""
        return (self.root / name).exists()

    def names(self, folder: str) -> list[str]:
        """What stands in a folder; nothing when there is no such folder."""
        try:
            return sorted(os.listdir(self.root / folder))  # noqa: PTH208 - names are wanted, not paths
        except FileNotFoundError:
            return []

    def walk(self, folder: str) -> list[Found]:
        """The data files below a folder at any depth, in the order of their names."""
        top = self.root / folder
        paths = sorted(path for path in top.rglob("*") if path.is_file())
        return [
            Found(path.relative_to(top).as_posix(), path.stat().st_size) for path in paths if _data(path.name)
        ]

    def settle(self, name: str) -> None:
        """Have a file's bytes on the disk."""
        _settle(self.root / name)

    def move(self, name: str, to: str) -> None:
        """Rename a file, with the folders that takes."""
        target = self.root / to
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).replace(target)

    def publish(self, name: str, to: str) -> bool:
        """Rename a folder; a folder that holds anything is never replaced by that."""
        try:
            (self.root / name).rename(self.root / to)
        except OSError as refused:
            if refused.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
        return True

    def keep_only(self, folder: str, names: set[str]) -> None:
        """Take away every file below a folder but these, checksums of Hadoop's included."""
        top = self.root / folder
        for path in list(top.rglob("*")):
            if path.is_file() and path.relative_to(top).as_posix() not in names:
                path.unlink()

    def remove(self, name: str) -> None:
        """Take away a file, or a folder and all in it; fine when there is none."""
        path = self.root / name
        if path.is_dir():
            # Another writer of the same batch may be clearing it too.
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class HadoopPlace:
    """A folder of any file system that Hadoop knows, through the session's JVM."""

    def __init__(self, jvm: Any, system: Any, root: Any) -> None:
        self._jvm = jvm
        self._system = system
        self._root = system.makeQualified(root)

    def text(self, name: str) -> str | None:
        """What a file says, or None when it does not exist."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def create(self, name: str, text: str) -> bool:
        """Make a file by renaming a finished one: a plain rename refuses a name that is taken."""
        path = self._path(name)
        if self._system.exists(path):
            return False
        draft = self._jvm.org.apache.hadoop.fs.Path(path.getParent(), f".{path.getName()}.{uuid.uuid4().hex}")
        stream = self._system.create(draft)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        if self._system.rename(draft, path):
            return True
        self._system.delete(draft, False)  # noqa: FBT003 - Hadoop's "recursive"
        return False

    def exists(self, name: str) -> bool:
        """Is there a file or folder of that name?"""
        return bool(self._system.exists(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """What stands in a folder; nothing when there is no such folder."""
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in self._system.listStatus(path))

    def walk(self, folder: str) -> list[Found]:
        """The data files below a folder at any depth, in the order of their names."""
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        top = path.toUri().getPath().rstrip("/") + "/"
        found = [
            Found(status.getPath().toUri().getPath().removeprefix(top), int(status.getLen()))
            for status in _each(self._system.listFiles(path, True))  # noqa: FBT003 - Hadoop's "recursive"
            if _data(status.getPath().getName())
        ]
        return sorted(found, key=lambda file: file.name)

    def settle(self, name: str) -> None:
        """Nothing: a file of these systems is safe once it is closed."""

    def move(self, name: str, to: str) -> None:
        """Rename a file, with the folders that takes. Raises OSError when the file system refuses."""
        target = self._path(to)
        self._system.mkdirs(target.getParent())
        if not self._system.rename(self._path(name), target):
            raise OSError(f"cannot rename {self._path(name)} to {target}")

    @property
    def renames_folders(self) -> bool:
        """On HDFS and local disks; object stores copy file by file."""
        return str(self._system.getUri().getScheme()) in ("file", "hdfs")

    def publish(self, name: str, to: str) -> bool:
        """Rename a folder, refusing a name that is taken."""
        target = self._path(to)
        # FileSystem.rename would move the folder into one of that name; FileContext's refuses.
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._system.getUri(), self._system.getConf()
        )
        option = self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename")
        try:
            context.rename(self._path(name), target, self._jvm.java.lang.reflect.Array.newInstance(option, 0))
        except Exception:
            # Which of Java's errors it is differs from one file system to the next.
            if self._system.exists(target):
                return False
            raise
        return True

    def keep_only(self, folder: str, names: set[str]) -> None:
        """Take away every file below a folder but these."""
        path = self._path(folder)
        if not self._system.exists(path):
            return
        top = path.toUri().getPath().rstrip("/") + "/"
        for status in list(_each(self._system.listFiles(path, True))):  # noqa: FBT003 - Hadoop's "recursive"
            if status.getPath().toUri().getPath().removeprefix(top) not in names:
                self._system.delete(status.getPath(), False)  # noqa: FBT003 - Hadoop's "recursive"

    def remove(self, name: str) -> None:
        """Take away a file, or a folder and all in it; fine when there is none."""
        self._system.delete(self._path(name), True)  # noqa: FBT003 - Hadoop's "recursive"

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._root.toString()}/{name}")


def _each(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()


def _data(name: str) -> bool:
    """Is it a file of rows, and not a marker or a checksum?"""
    return not name.startswith((".", "_"))


def _settle(path: Path) -> None:
    # Some file systems cannot be asked about folders.
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
