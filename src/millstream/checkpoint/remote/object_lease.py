"""The lease of a checkpoint on an object store: one object, which each change replaces on condition of its last tag.

    {"number": 8, "token": "…", "files": 8, "released": false, "renewals": 12, "owner": {…}}

The driver that has the lease replaces the object every few seconds. A driver that has seen the same tag for the time
of a lapse replaces it with the next number, and the former one's next renewal is refused. The store decides each in
one operation. `files` is the number of the folder with the checkpoint's own files (`own_files.py`).
"""

from __future__ import annotations

import json
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from millstream.checkpoint.remote.file_system import file_system

OWN = "_millstream"
_NAME = "lease.json"
# A renewal whose response was lost has changed the tag. The next attempt has the new one.
_ATTEMPTS = 3


@dataclass(frozen=True)
class LeaseState:
    """The content of a lease object. `token` is drawn by the process that took the lease with this number."""

    number: int
    token: str
    files: int | None
    owner: dict[str, Any]
    is_released: bool = False
    renewals: int = 0

    def encode(self) -> bytes:
        """Return the content."""
        return json.dumps(
            {
                "number": self.number,
                "token": self.token,
                "files": self.files,
                "released": self.is_released,
                "renewals": self.renewals,
                "owner": self.owner,
            }
        ).encode()

    @classmethod
    def decode(cls, content: bytes) -> LeaseState:
        """Read what `encode` wrote. Raises `ValueError`."""
        data = json.loads(content)
        return cls(
            data["number"], data["token"], data["files"], data["owner"], data["released"], data["renewals"]
        )


class ObjectLease:
    """The lease object of one checkpoint, as one process reads and replaces it."""

    def __init__(self, checkpoint: str) -> None:
        self.checkpoint, self._uri = checkpoint, _locate(checkpoint)
        self._token = uuid.uuid4().hex
        self._seen: LeaseState | None = None
        self._tag = ""
        self._lock = threading.Lock()

    def find_newest(self) -> tuple[int | None, bool]:
        """Return the number of the lease, None before the first, and whether it was released."""
        self._read()
        return (None, False) if self._seen is None else (self._seen.number, self._seen.is_released)

    def find_mark(self, number: int) -> object | None:
        """Return a value that changes with each renewal, or None if the lease has another number."""
        self._read()
        return self._tag if self._seen is not None and self._seen.number == number else None

    def read_owner(self, number: int | None) -> dict[str, Any]:
        """Return what the owner of this number wrote, or nothing if the lease has another number."""
        self._read()
        return self._seen.owner if self._seen is not None and self._seen.number == number else {}

    def create(self, number: int, owner: dict[str, Any]) -> None:
        """Take the lease with the next number. Raises `FileExistsError` if another process was faster."""
        former = self._seen
        if number != (0 if former is None else former.number + 1):
            raise FileExistsError(self._uri)
        state = LeaseState(number, self._token, None if former is None else former.files, owner)
        # A client that lost the response asks again by itself, and is refused although it was the first.
        with suppress(FileExistsError, FileNotFoundError):
            if former is None:
                file_system().create(self._uri, state.encode())
            else:
                file_system().replace(self._uri, state.encode(), self._tag)
        self._read()
        if not self._is_mine():
            raise FileExistsError(self._uri)

    def renew(self, number: int) -> None:
        """Renew the lease. Raises `FileNotFoundError` if another process has it."""
        with self._lock:
            self._update(number)

    def require(self, number: int) -> None:
        """Raise `FileNotFoundError` if another process has the lease at this moment."""
        state = read_lease(self.checkpoint)
        if state is None or (state.number, state.token) != (number, self._token):
            raise FileNotFoundError(self._uri)

    def set_files(self, number: int) -> None:
        """Make the folder with this number that of the checkpoint's own files."""
        with self._lock:
            self._update(number, files=number)

    def release(self, number: int) -> None:
        """Let the next process take the lease at once. Raises `FileNotFoundError` if it has it already."""
        with self._lock:
            self._update(number, is_released=True)

    def _update(self, number: int, **changes: Any) -> None:
        for _ in range(_ATTEMPTS):
            state = self._seen
            if state is None or not self._is_mine() or state.number != number:
                raise FileNotFoundError(self._uri)
            updated = replace(state, renewals=state.renewals + 1, **changes)
            try:
                file_system().replace(self._uri, updated.encode(), self._tag)
            except FileExistsError:
                self._read()
                continue
            self._read()
            if self._seen is None or not self._is_mine():
                raise FileNotFoundError(self._uri)
            return
        raise OSError(f"{self._uri} changes at each attempt to replace it")

    def _is_mine(self) -> bool:
        return self._seen is not None and self._seen.token == self._token

    def _read(self) -> None:
        try:
            self._tag, content = file_system().read_tagged(self._uri)
        except FileNotFoundError:
            self._seen, self._tag = None, ""
        else:
            self._seen = LeaseState.decode(content)


def read_lease(checkpoint: str) -> LeaseState | None:
    """Return the lease of a checkpoint, or None before the first. Raises `OSError`."""
    try:
        return LeaseState.decode(file_system().read(_locate(checkpoint)))
    except FileNotFoundError:
        return None


def _locate(checkpoint: str) -> str:
    return f"{checkpoint}/{OWN}/{_NAME}"
