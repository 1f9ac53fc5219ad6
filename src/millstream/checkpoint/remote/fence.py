"""How changes below a remote checkpoint are made, so that a driver that was replaced can make none."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from millstream.checkpoint.remote.file_system import file_system
from millstream.diagnostics.failure import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

DRAFT, DELETED, MOVED = "draft-", "deleted-", "moved-"
"""What the names in the folder of a lease begin with: files to be put in place, to be deleted, to be moved."""


class Fence(Protocol):
    """The changes of one lease. Each raises `CheckpointError` if another run has taken over."""

    def write(self, uri: str, content: bytes) -> None:
        """Put a file in place, whole or not at all. Replaces an existing one."""

    def rename(self, uri: str, target: str) -> None:
        """Rename a file or folder. The target must not exist."""

    def delete(self, uri: str) -> None:
        """Delete a file, or a folder with its content."""


_fences: dict[str, Fence] = {}


def set_fence(root: str, fence: Fence) -> None:
    """Let changes below the folder `root` be made by this fence."""
    _fences[root] = fence


def remove_fence(root: str) -> None:
    """Allow no more changes below `root`."""
    _fences.pop(root, None)


def find_fence(uri: str) -> Fence:
    """Return the fence of the lease that covers a path. Raises `CheckpointError` if this process has none."""
    for root, fence in _fences.items():
        if uri == root or uri.startswith(f"{root}/"):
            return fence
    raise CheckpointError(
        f"{uri} is in a checkpoint that this process has not locked",
        "report this as a defect of Millstream",
    )


def taken_over(checkpoint: str) -> CheckpointError:
    """Return the error of a change that came too late."""
    return CheckpointError(
        f"checkpoint {checkpoint} has been taken over by another run",
        "keep that run; two runs of a query must not both write",
    )


class RenameFence:
    """Changes that are renames from or into the folder of a lease, which the next driver renames first."""

    def __init__(self, checkpoint: str, folder: str) -> None:
        self._checkpoint, self._folder = checkpoint, folder

    def write(self, uri: str, content: bytes) -> None:
        """Put a file in place, whole or not at all. Replaces an existing one."""
        draft = self._name(DRAFT)
        with self._explained():
            file_system().create(draft, content)
            file_system().rename(draft, uri, replaces=True)

    def rename(self, uri: str, target: str) -> None:
        """Rename a file or folder. The target must not exist. After a crash it may be in the folder of the lease."""
        moved = self._name(MOVED)
        with self._explained():
            file_system().rename(uri, moved)
            file_system().rename(moved, target)

    def delete(self, uri: str) -> None:
        """Delete a file, or a folder with its content. A folder disappears at once."""
        deleted = self._name(DELETED)
        with self._explained():
            file_system().rename(uri, deleted)
        file_system().delete(deleted)

    def _name(self, prefix: str) -> str:
        return f"{self._folder}/{prefix}{uuid.uuid4().hex}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain a change that failed because another run has renamed the folder of the lease."""
        try:
            yield
        except FileNotFoundError as error:
            if file_system().status(self._folder) is not None:
                raise
            raise taken_over(self._checkpoint) from error
