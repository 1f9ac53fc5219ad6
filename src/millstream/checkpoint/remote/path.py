"""Paths on a remote file system, with the part of `pathlib.Path` that a checkpoint needs.

Changes are made by the fence of the lease that this process has of the checkpoint (`fence.py`, `own_files.py`). Once
another driver has taken over, no change of the former driver succeeds.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from millstream.checkpoint.remote.fence import find_fence
from millstream.checkpoint.remote.file_system import FileStatus, file_system, is_on_object_store
from millstream.checkpoint.remote.own_files import locate
from millstream.diagnostics.failure import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class FileTimes:
    """Size in bytes and time of the last change in seconds, under the names of `os.stat_result`."""

    st_size: int
    st_mtime: float


class RemotePath:
    """A path such as `hdfs://namenode:8020/checkpoints/orders`.

    Functions of Python that open or change local files reject it, because it is not `os.PathLike`.
    """

    def __init__(self, uri: str, listed: FileStatus | None = None) -> None:
        self._uri = uri.rstrip("/")
        # What the listing of its folder said, so that a file of a listing need not be asked for once more.
        self._listed = listed

    def __str__(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"RemotePath({self._uri!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and other._uri == self._uri

    def __lt__(self, other: RemotePath) -> bool:
        return self._uri < other._uri

    def __hash__(self) -> int:
        return hash(self._uri)

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self._uri}/{name}")

    @property
    def is_object(self) -> bool:
        """Whether it is on an object store, which has no folders and renames nothing."""
        return is_on_object_store(self._uri)

    @property
    def name(self) -> str:
        """The last part."""
        return self._uri.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        """The folder that contains it."""
        return RemotePath(self._uri.rpartition("/")[0])

    @property
    def parents(self) -> tuple[RemotePath, ...]:
        """The folders above it, the nearest first, without the root."""
        above, path = [], self.parent
        while path.name and not path._uri.endswith(":/"):  # noqa: SLF001 - of its own class
            above.append(path)
            path = path.parent
        return tuple(above)

    def with_name(self, name: str) -> RemotePath:
        """Return the path with another last part."""
        return self.parent / name

    def absolute(self) -> RemotePath:
        """Return the path itself, which has a scheme."""
        return self

    def exists(self) -> bool:
        """Return whether there is a file or a folder."""
        return file_system().status(locate(self._uri)) is not None

    def is_file(self) -> bool:
        """Return whether there is a file."""
        status = self._listed or file_system().status(locate(self._uri))
        return status is not None and not status.is_folder

    def is_dir(self) -> bool:
        """Return whether there is a folder."""
        status = self._listed or file_system().status(locate(self._uri))
        return status is not None and status.is_folder

    def stat(self) -> FileTimes:
        """Return size and time. Raises `FileNotFoundError`."""
        status = self._listed or file_system().status(locate(self._uri))
        if status is None:
            raise FileNotFoundError(self._uri)
        return FileTimes(status.bytes, status.changed / 1000)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield what is in a folder. Raises `FileNotFoundError`."""
        for name, status in file_system().entries(locate(self._uri)):
            yield RemotePath(f"{self._uri}/{name}", status)

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield the paths below that match a pattern with `*`, part by part. None if the folder is gone."""
        first, _, rest = pattern.partition("/")
        for path in self._children():
            if fnmatchcase(path.name, first):
                if not rest:
                    yield path
                elif path.is_dir():
                    yield from path.glob(rest)

    def rglob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield all paths below, at any depth, whose name matches a pattern."""
        for path in self._children():
            if fnmatchcase(path.name, pattern):
                yield path
            if path.is_dir():
                yield from path.rglob(pattern)

    def _children(self) -> list[RemotePath]:
        try:
            return list(self.iterdir())
        except FileNotFoundError:
            return []

    def read_bytes(self) -> bytes:
        """Return the content of a file. Raises `FileNotFoundError`."""
        return file_system().read(locate(self._uri))

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the content of a file as text. Raises `FileNotFoundError`."""
        return self.read_bytes().decode(encoding)

    def mkdir(self, mode: int | None = None, *, parents: bool = True, exist_ok: bool = True) -> None:  # noqa: ARG002 - as Path has it
        """Create a folder and those above it, unless they exist. `mode` is that of a folder that did not exist."""
        if not self.is_object:
            file_system().make_folder(self._uri, mode)

    def write_text(self, text: str) -> None:
        """Put a file in place, whole or not at all. Replaces an existing one."""
        find_fence(self._uri).write(self._uri, text.encode())

    def rename(self, target: RemotePath) -> None:
        """Rename a file or folder. The target must not exist. After a crash it may be in the folder of the lease."""
        find_fence(self._uri).rename(self._uri, str(target))

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete a file. Raises `FileNotFoundError`."""
        if self.exists():
            self.delete_all()
        elif not missing_ok:
            raise FileNotFoundError(self._uri)

    def delete_all(self) -> None:
        """Delete a file, or a folder with its content."""
        find_fence(self._uri).delete(self._uri)


CheckpointPath: TypeAlias = Path | RemotePath
"""The path of a checkpoint: on a file system of this machine or a remote one."""


def open_path(place: str, local: Path | None) -> CheckpointPath:
    """Return the path of a place in a spec, given its local path if it has one."""
    return local if local is not None else RemotePath(place)


def to_spark_path(path: CheckpointPath) -> str:
    """Return a path as Spark needs it. Without a scheme, it would be on Hadoop's default file system."""
    return str(path) if isinstance(path, RemotePath) else f"file:{path.absolute()}"


def relative_path(path: CheckpointPath, folder: CheckpointPath) -> PurePosixPath:
    """Return the part of a path below a folder that contains it."""
    return PurePosixPath(str(path).removeprefix(f"{folder}/"))


def list_folder(folder: CheckpointPath) -> list[CheckpointPath]:
    """Return what is in a folder, by name. Raises `FileNotFoundError`."""
    return [folder / name for name in sorted(path.name for path in folder.iterdir())]


def rename_path(path: CheckpointPath, target: CheckpointPath) -> None:
    """Rename a file or folder within one file system."""
    match path, target:
        case RemotePath(), RemotePath():
            path.rename(target)
        case Path(), Path():
            path.rename(target)
        case _:
            raise ValueError(f"{path} and {target} are on different file systems")


def delete_folder(folder: CheckpointPath) -> None:
    """Delete a folder with its content. A local one that another process is deleting is left to it."""
    if isinstance(folder, RemotePath):
        folder.delete_all()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def require_local(folder: CheckpointPath, operation: str) -> Path:
    """Return the path of a local checkpoint. Raises `InvalidInput` for a remote one: `rewinding` is not possible."""
    if isinstance(folder, RemotePath):
        by_hand = (
            # A copy of the folder would have Millstream's own files at other paths (`own_files.py`).
            "leave the checkpoint as it is, or give the query another one (queries.NAME.checkpoint)"
            if folder.is_object
            else "stop the run, copy the folder to this machine (hdfs dfs -get), use the command there with "
            "--set queries.NAME.checkpoint=FOLDER, and put it back (hdfs dfs -put)"
        )
        raise InvalidInput(
            f"{operation} is not possible for {folder}: its file system cannot copy or link a folder in place",
            by_hand,
        )
    return folder
