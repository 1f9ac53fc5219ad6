"""File system operations of the file writers, on a local disk or on any file system of Hadoop."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from millstream.checkpoint.atomic_file import flush_path
from millstream.diagnostics.failure import NotReady
from millstream.spark import internals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.spec.location import Location


# An option of Hadoop's client of S3 (`Options.CreateFileOptionKeys`).
_IF_NONE_MATCH = "fs.option.create.conditional.overwrite"


@dataclass(frozen=True)
class FileEntry:
    """A file: its path relative to a folder, with `/`, and its length in bytes."""

    name: str
    bytes: int


class SinkFolder(Protocol):
    """Operations on a folder. Names are relative to it, with `/` between their parts."""

    @property
    def renames_folders(self) -> bool:
        """Whether a folder is renamed atomically with its content."""

    def text(self, name: str) -> str | None:
        """Return the content of a file, or None if it does not exist."""

    def create(self, name: str, text: str) -> bool:
        """Create a file atomically; return False, without a change, if it exists."""

    def exists(self, name: str) -> bool:
        """Return whether a file or folder of that name exists."""

    def names(self, folder: str) -> list[str]:
        """List the names in a folder; none if it does not exist."""

    def walk(self, folder: str) -> list[FileEntry]:
        """List the data files below a folder at any depth, in the order of their names."""

    def settle(self, name: str) -> None:
        """Flush a file to disk, if the file system supports that."""

    def move(self, name: str, to: str) -> None:
        """Rename a file atomically, creating missing folders. The new name must not exist."""

    def publish(self, name: str, to: str) -> bool:
        """Rename a folder atomically; return False, without a change, if the new name exists."""

    def keep_only(self, folder: str, names: set[str]) -> None:
        """Delete every file below a folder except these."""

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its content; do nothing if it does not exist."""


def open_folder(spark: SparkSession, location: Location) -> SinkFolder:
    """Open the folder of a location; without a scheme, on Hadoop's default file system."""
    jvm: Any = internals.jvm(spark)
    path = jvm.org.apache.hadoop.fs.Path(str(location))
    system = path.getFileSystem(internals.hadoop_configuration(spark))
    if system.getUri().getScheme() == "file" and location.local is not None:
        return LocalPlace(location.local)
    return HadoopPlace(jvm, system, path)


def require_writable(location: Location) -> None:
    """Raise `NotReady` if a local folder, or its nearest existing parent, cannot be written."""
    folder = location.local
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise NotReady(f"'{folder}' is a file, but must be a folder", "change the path")
    existing = next(above for above in (folder.absolute(), *folder.absolute().parents) if above.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise NotReady(
            f"'{existing}' cannot be written, so files cannot be created in '{folder}'",
            "grant write permission, or change the path",
        )


class LocalPlace:
    """A local folder. Does not use Hadoop, which starts a process for each file it creates."""

    renames_folders = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def text(self, name: str) -> str | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return (self.root / name).read_text()
        except FileNotFoundError:
            return None

    def create(self, name: str, text: str) -> bool:
        """Create a file by linking a finished one to its name, because a link never replaces."""
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
        flush_path(path.parent)
        return True

    def exists(self, name: str) -> bool:
        """Return whether a file or folder of that name exists."""
        return (self.root / name).exists()

    def names(self, folder: str) -> list[str]:
        """List the names in a folder; none if it does not exist."""
        try:
            return sorted(os.listdir(self.root / folder))  # noqa: PTH208 - returns names, not paths
        except FileNotFoundError:
            return []

    def walk(self, folder: str) -> list[FileEntry]:
        """List the data files below a folder at any depth, in the order of their names."""
        top = self.root / folder
        paths = sorted(path for path in top.rglob("*") if path.is_file())
        return [
            FileEntry(path.relative_to(top).as_posix(), path.stat().st_size)
            for path in paths
            if _is_data_file(path.name)
        ]

    def settle(self, name: str) -> None:
        """Flush a file to disk."""
        flush_path(self.root / name)

    def move(self, name: str, to: str) -> None:
        """Rename a file, creating missing folders."""
        target = self.root / to
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).replace(target)

    def publish(self, name: str, to: str) -> bool:
        """Rename a folder, which never replaces a folder that is not empty."""
        try:
            (self.root / name).rename(self.root / to)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
        return True

    def keep_only(self, folder: str, names: set[str]) -> None:
        """Delete every file below a folder except these, including Hadoop's checksums."""
        top = self.root / folder
        for path in list(top.rglob("*")):
            if path.is_file() and path.relative_to(top).as_posix() not in names:
                path.unlink()

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its content; do nothing if it does not exist."""
        path = self.root / name
        if path.is_dir():
            # Another writer of the same batch may be deleting it too.
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class HadoopPlace:
    """A folder of any file system that Hadoop supports, through the session's JVM."""

    def __init__(self, jvm: Any, system: Any, root: Any) -> None:
        self._java = jvm
        self._system = system
        self._root = system.makeQualified(root)

    def text(self, name: str) -> str | None:
        """Return the content of a file, or None if it does not exist."""
        path = self._path(name)
        if not self._system.exists(path):
            return None
        stream = self._system.open(path)
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def create(self, name: str, text: str) -> bool:
        """Create a file by renaming a finished one, because a plain rename never replaces.

        On S3, where a rename is a copy that replaces, it is one conditional write.
        """
        path = self._path(name)
        if self._is_s3:
            return self._create_object(name, text)
        if self._system.exists(path):
            return False
        draft = self._java.org.apache.hadoop.fs.Path(
            path.getParent(), f".{path.getName()}.{uuid.uuid4().hex}"
        )
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
        """Return whether a file or folder of that name exists."""
        return bool(self._system.exists(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """List the names in a folder; none if it does not exist."""
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in self._system.listStatus(path))

    def walk(self, folder: str) -> list[FileEntry]:
        """List the data files below a folder at any depth, in the order of their names."""
        path = self._path(folder)
        if not self._system.exists(path):
            return []
        top = path.toUri().getPath().rstrip("/") + "/"
        entries = [
            FileEntry(status.getPath().toUri().getPath().removeprefix(top), int(status.getLen()))
            for status in _iterate(self._system.listFiles(path, True))  # noqa: FBT003 - Hadoop's "recursive"
            if _is_data_file(status.getPath().getName())
        ]
        return sorted(entries, key=lambda file: file.name)

    def settle(self, name: str) -> None:
        """Do nothing: in these systems a file is safe once it is closed."""

    def move(self, name: str, to: str) -> None:
        """Rename a file, creating missing folders. Raises OSError if the file system refuses."""
        target = self._path(to)
        self._system.mkdirs(target.getParent())
        try:
            is_renamed = self._system.rename(self._path(name), target)
        except Exception as error:
            # S3's client raises where others return false; the Java error depends on the file system.
            raise OSError(f"cannot rename {self._path(name)} to {target}: {error}") from error
        if not is_renamed:
            raise OSError(f"cannot rename {self._path(name)} to {target}")

    @property
    def renames_folders(self) -> bool:
        """True on HDFS and local disks; object stores copy file by file."""
        return str(self._system.getUri().getScheme()) in ("file", "hdfs")

    def publish(self, name: str, to: str) -> bool:
        """Rename a folder; return False if the new name exists."""
        target = self._path(to)
        # FileSystem.rename would move the folder into an existing one; FileContext's refuses.
        context = self._java.org.apache.hadoop.fs.FileContext.getFileContext(
            self._system.getUri(), self._system.getConf()
        )
        option = self._java.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename")
        try:
            context.rename(
                self._path(name), target, self._java.java.lang.reflect.Array.newInstance(option, 0)
            )
        except Exception:
            # The Java error depends on the file system.
            if self._system.exists(target):
                return False
            raise
        return True

    def keep_only(self, folder: str, names: set[str]) -> None:
        """Delete every file below a folder except these."""
        path = self._path(folder)
        if not self._system.exists(path):
            return
        top = path.toUri().getPath().rstrip("/") + "/"
        for status in list(_iterate(self._system.listFiles(path, True))):  # noqa: FBT003 - Hadoop's "recursive"
            if status.getPath().toUri().getPath().removeprefix(top) not in names:
                self._system.delete(status.getPath(), False)  # noqa: FBT003 - Hadoop's "recursive"

    def remove(self, name: str) -> None:
        """Delete a file, or a folder with its content; do nothing if it does not exist."""
        self._system.delete(self._path(name), True)  # noqa: FBT003 - Hadoop's "recursive"

    @property
    def _is_s3(self) -> bool:
        return str(self._system.getUri().getScheme()) == "s3a"

    def _create_object(self, name: str, text: str) -> bool:
        """Create an object with `If-None-Match: *`, which S3 refuses if the name is taken.

        `FileSystem.create` without overwriting does not send that condition in Hadoop 3.5; it looks, then writes.
        """
        builder = self._system.createFile(self._path(name)).overwrite(True)  # noqa: FBT003 - Hadoop's
        stream = builder.must(_IF_NONE_MATCH, True).build()  # noqa: FBT003 - Hadoop's
        stream.write(bytearray(text.encode()))
        try:
            stream.close()
        except Exception as error:
            if "RemoteFileChangedException" not in str(error):
                raise
            # The client repeats a request whose answer is lost, and then finds its own object.
            return self.text(name) == text
        return True

    def _path(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self._root.toString()}/{name}")


def _iterate(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()


def _is_data_file(name: str) -> bool:
    """Return whether the name is a data file, and not a marker or a checksum."""
    return not name.startswith((".", "_"))
