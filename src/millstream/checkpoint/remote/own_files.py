"""Millstream's own files in a checkpoint on an object store, which renames nothing.

They have one folder for each lease: `_millstream/record.json` of a checkpoint is the object
`_millstream/files/8/record.json` while `lease.json` says that the files are those of number 8. The driver that takes
over copies them from 7 to 8 and then changes that number. Its predecessor writes into folder 7, which no one reads.

A change counts once the lease was seen to be this driver's after the write. A driver that takes over later copies the
files after that moment, so it has the change. Otherwise the change raises an error, and nothing may follow from it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from millstream.checkpoint.remote.fence import taken_over
from millstream.checkpoint.remote.file_system import file_system, is_on_object_store
from millstream.checkpoint.remote.object_lease import OWN, ObjectLease, read_lease
from millstream.diagnostics.failure import CheckpointError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator


ROWS = "rows"
"""The folder in `_millstream` for data whose names are drawn, which has no number."""

_FILES = "files"
# At each start the files of the former number are copied, a request each to read and to write.
_COPIES = 8

_numbers: dict[str, int] = {}


def locate(uri: str) -> str:
    """Return where a path of a checkpoint is: itself, but for Millstream's own files on an object store."""
    if not is_on_object_store(uri):
        return uri
    checkpoint, name = _split(uri)
    if name is None:
        return uri
    number = _numbers.get(checkpoint)
    if number is None:
        state = read_lease(checkpoint)
        number = None if state is None else state.files
    return f"{_folder(checkpoint, number)}{name}"


class NumberedFence:
    """Changes of the driver with this lease: its own files in the folder of its number, and new files of Spark."""

    def __init__(self, lease: ObjectLease, number: int) -> None:
        self._lease, self._number = lease, number

    def write(self, uri: str, content: bytes) -> None:
        """Write an own file, or create one of Spark's, which is never replaced."""
        place = self._locate(uri)
        if place is not None:
            file_system().write(place, content)
            self._confirm()
            return
        try:
            file_system().create(uri, content)
        except FileExistsError as error:
            # The client repeats a request whose response was lost, and then finds its own object.
            if file_system().read(uri) == content:
                return
            raise CheckpointError(
                f"{uri} was written by another run in the meantime",
                "start again; it continues from that file",
            ) from error

    def rename(self, uri: str, target: str) -> None:  # noqa: ARG002 - as the protocol has it
        """Refuse: an object store renames nothing."""
        raise _refusal(uri, "moved")

    def delete(self, uri: str) -> None:
        """Delete an own file, or rows, whose name is drawn. Files of Spark are refused."""
        place = self._locate(uri)
        if place is not None:
            file_system().delete(place)
            self._confirm()
        elif f"/{OWN}/{ROWS}/" in uri:
            # What no note named while this driver had the lease, no later driver's notes name: they are copies of
            # its own, and new ones name new rows. So the lease is seen after they were read, before the deletion.
            self._confirm()
            file_system().delete(uri)
        else:
            raise _refusal(uri, "deleted")

    def _locate(self, uri: str) -> str | None:
        _, name = _split(uri)
        return None if name is None else f"{_folder(self._lease.checkpoint, self._number)}{name}"

    def _confirm(self) -> None:
        try:
            self._lease.require(self._number)
        except FileNotFoundError as error:
            raise taken_over(self._lease.checkpoint) from error


class FencedObjectLease(ObjectLease):
    """A lease object, and the own files of its checkpoint."""

    def fence_former(self, number: int) -> NumberedFence:
        """Copy the own files of the former lease, make the copies those that count, and delete the former ones.

        Raises `CheckpointError` if another run has taken over meanwhile.
        """
        state = read_lease(self.checkpoint)
        former = None if state is None else state.files
        try:
            if former is not None:
                _copy(_folder(self.checkpoint, former), _folder(self.checkpoint, number))
            self.set_files(number)
        except FileNotFoundError as error:
            raise taken_over(self.checkpoint) from error
        _numbers[self.checkpoint] = number
        folder = f"{self.checkpoint}/{OWN}/{_FILES}"
        for name in _list(folder):
            # A driver that is suspended here may find the folder of its successor when it wakes up.
            if name.isdigit() and int(name) < number:
                file_system().delete(f"{folder}/{name}")
        return NumberedFence(self, number)

    def release(self, number: int) -> None:
        """Let the next process take the lease at once. Raises `OSError`."""
        _numbers.pop(self.checkpoint, None)
        super().release(number)


def _copy(source: str, target: str) -> None:
    def copy(name: str) -> None:
        # Its former driver may delete a file meanwhile, or a later one the folder, in which case `set_files` fails.
        with suppress(FileNotFoundError):
            file_system().write(f"{target}{name}", file_system().read(f"{source}{name}"))

    with ThreadPoolExecutor(_COPIES) as pool:
        list(pool.map(copy, _walk(source, "")))


def _split(uri: str) -> tuple[str, str | None]:
    """Return the checkpoint, and the part of an own file's path after `_millstream`, or None for another file."""
    checkpoint, _, rest = f"{uri}/".partition(f"/{OWN}/")
    if not _ or rest.partition("/")[0] in (_FILES, ROWS):
        return checkpoint, None
    return checkpoint, f"/{rest}".rstrip("/")


def _folder(checkpoint: str, number: int | None) -> str:
    return f"{checkpoint}/{OWN}/{_FILES}/{'none' if number is None else number}"


def _walk(folder: str, prefix: str) -> Iterator[str]:
    """Yield the paths of all objects below a folder, from the folder, with a slash in front."""
    try:
        entries = file_system().entries(f"{folder}{prefix}")
    except FileNotFoundError:
        return
    for name, status in entries:
        if status.is_folder:
            yield from _walk(folder, f"{prefix}/{name}")
        else:
            yield f"{prefix}/{name}"


def _list(folder: str) -> list[str]:
    try:
        return [name for name, _ in file_system().entries(folder)]
    except FileNotFoundError:
        return []


def _refusal(uri: str, change: str) -> InvalidInput:
    return InvalidInput(
        f"{uri} is not {change}: on S3, a run that was suspended could do this later, to the files of the next run",
        "end all runs of the query, and make the change with an S3 tool, such as 'aws s3'",
    )
