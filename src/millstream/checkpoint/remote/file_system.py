"""What a checkpoint needs of a remote file system, and the one that this process uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMES = ("hdfs", "viewfs")
"""Schemes whose file systems create a file exclusively and rename atomically, as a lease of a checkpoint needs."""
OBJECT_STORES = ("s3a",)
"""Schemes whose file systems replace an object on condition of its tag, which serves a lease as well."""


@dataclass(frozen=True)
class FileStatus:
    """Size of a file in bytes, 0 for a folder, and the time of its last change in milliseconds since 1970."""

    is_folder: bool
    bytes: int
    changed: int


class RemoteFileSystem(Protocol):
    """Operations on files by their URI. All raise `OSError`, and its subclasses where they are named."""

    def status(self, uri: str) -> FileStatus | None:
        """Return what is at a URI, or None."""

    def entries(self, uri: str) -> list[tuple[str, FileStatus]]:
        """List the names in a folder. Raises `FileNotFoundError`."""

    def read(self, uri: str) -> bytes:
        """Return the content of a file. Raises `FileNotFoundError`."""

    def create(self, uri: str, content: bytes) -> None:
        """Create a file in an existing folder, of several callers for one.

        The name appears before the content. Raises `FileExistsError`, and `FileNotFoundError` without the folder. An
        object store has no folders, and an object appears whole.
        """

    def write(self, uri: str, content: bytes) -> None:
        """Create or replace an object of an object store."""

    def read_tagged(self, uri: str) -> tuple[str, bytes]:
        """Return the tag of an object and its content, of the same moment. Raises `FileNotFoundError`."""

    def replace(self, uri: str, content: bytes, tag: str) -> None:
        """Replace an object that has this tag. Raises `FileExistsError` if it has another, `FileNotFoundError`."""

    def make_folder(self, uri: str, mode: int | None = None) -> None:
        """Create a folder and those above it, unless they exist. `mode` is that of the new folder itself."""

    def rename(self, uri: str, target: str, *, replaces: bool = False) -> None:
        """Rename a file or folder atomically into an existing folder.

        Raises `FileNotFoundError` if the file or the folder is gone, and `FileExistsError` if the target exists,
        unless it is a file and `replaces`.
        """

    def delete(self, uri: str) -> None:
        """Delete a file, or a folder with its content. Does nothing if it is gone."""

    def touch(self, uri: str) -> None:
        """Set the time of a file's last change to now. Raises `FileNotFoundError`."""

    def client_process(self) -> int | None:
        """Return the id of the process that performs these operations, if it is another one than this."""


_opened: list[RemoteFileSystem] = []
_openers: list[Callable[[], object]] = []


def set_file_system(system: RemoteFileSystem | None) -> None:
    """Use this file system for all remote paths of this process; None for none."""
    _opened[:] = [] if system is None else [system]


def set_opener(opener: Callable[[], object]) -> None:
    """Call this when a remote path is used and there is no file system: it starts Spark, which sets one."""
    _openers[:] = [opener]


def is_on_object_store(uri: str) -> bool:
    """Return whether a URI is on an object store, which renames nothing."""
    return uri.partition("://")[0] in OBJECT_STORES


def file_system() -> RemoteFileSystem:
    """Return the file system of remote paths."""
    if not _opened and _openers:
        _openers[0]()
    if not _opened:
        raise NotReady(
            "this command does not start Spark, without which a remote checkpoint cannot be read",
            "use a command that starts Spark, such as 'millstream checkpoint list'",
        )
    return _opened[0]
