"""Remote file systems in memory, with the guarantees of HDFS and of S3."""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict

from millstream.checkpoint.remote.file_system import FileStatus


class MemoryFileSystem:
    """Files and folders by URI, as on HDFS: one creator of a file, and renames that happen at once."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = {"hdfs://nn"}
        self.changed: dict[str, int] = defaultdict(int)
        self.is_away = False
        self._lock = threading.RLock()
        self._ticks = 0

    def status(self, uri: str) -> FileStatus | None:
        self._require_answer()
        with self._lock:
            if uri in self.folders:
                return FileStatus(is_folder=True, bytes=0, changed=0)
            if uri in self.files:
                return FileStatus(is_folder=False, bytes=len(self.files[uri]), changed=self.changed[uri])
            return None

    def entries(self, uri: str) -> list[tuple[str, FileStatus]]:
        with self._lock:
            if self.status(uri) is None:
                raise FileNotFoundError(uri)
            children = sorted(path for path in (*self.files, *self.folders) if path.rpartition("/")[0] == uri)
            statuses = [(path.rpartition("/")[2], self.status(path)) for path in children]
            return [(name, status) for name, status in statuses if status is not None]

    def read(self, uri: str) -> bytes:
        self._require_answer()
        with self._lock:
            if uri not in self.files:
                raise FileNotFoundError(uri)
            return self.files[uri]

    def create(self, uri: str, content: bytes) -> None:
        self._require_answer()
        with self._lock:
            self._require_parent(uri)
            if uri in self.files or uri in self.folders:
                raise FileExistsError(uri)
            self.files[uri] = content
            self.touch(uri)

    def make_folder(self, uri: str, mode: int | None = None) -> None:  # noqa: ARG002 - as the protocol has it
        self._require_answer()
        with self._lock:
            while uri not in self.folders:
                self.folders.add(uri)
                uri = uri.rpartition("/")[0]

    def rename(self, uri: str, target: str, *, replaces: bool = False) -> None:
        self._require_answer()
        with self._lock:
            if self.status(uri) is None:
                raise FileNotFoundError(uri)
            self._require_parent(target)
            if target in self.folders or (target in self.files and not replaces):
                raise FileExistsError(target)
            for path in [path for path in self.files if path == uri or path.startswith(f"{uri}/")]:
                self.files[target + path.removeprefix(uri)] = self.files.pop(path)
                self.changed[target + path.removeprefix(uri)] = self.changed.pop(path)
            for path in [path for path in self.folders if path == uri or path.startswith(f"{uri}/")]:
                self.folders.remove(path)
                self.folders.add(target + path.removeprefix(uri))

    def delete(self, uri: str) -> None:
        self._require_answer()
        with self._lock:
            for path in [path for path in self.files if path == uri or path.startswith(f"{uri}/")]:
                del self.files[path]
            self.folders -= {path for path in self.folders if path == uri or path.startswith(f"{uri}/")}

    def touch(self, uri: str) -> None:
        self._require_answer()
        with self._lock:
            if uri not in self.files:
                raise FileNotFoundError(uri)
            self._ticks += 1
            self.changed[uri] = self._ticks

    def client_process(self) -> int | None:
        return None

    def _require_parent(self, uri: str) -> None:
        if uri.rpartition("/")[0] not in self.folders:
            raise FileNotFoundError(uri)

    def _require_answer(self) -> None:
        if self.is_away:
            raise OSError("the name node does not answer")


class MemoryObjectStore(MemoryFileSystem):
    """Objects by URI, as on S3: no folders, no renames, and writes on condition of what has the name."""

    honours_conditions = True

    def status(self, uri: str) -> FileStatus | None:
        self._require_answer()
        with self._lock:
            if uri not in self.files and any(path.startswith(f"{uri}/") for path in self.files):
                return FileStatus(is_folder=True, bytes=0, changed=0)
            return super().status(uri)

    def entries(self, uri: str) -> list[tuple[str, FileStatus]]:
        with self._lock:
            below = [path.removeprefix(f"{uri}/") for path in self.files if path.startswith(f"{uri}/")]
            if not below:
                raise FileNotFoundError(uri)
            names = sorted({path.partition("/")[0] for path in below})
            statuses = [(name, self.status(f"{uri}/{name}")) for name in names]
            return [(name, status) for name, status in statuses if status is not None]

    def create(self, uri: str, content: bytes) -> None:
        with self._lock:
            if uri in self.files and self.honours_conditions:
                raise FileExistsError(uri)
            self.write(uri, content)

    def write(self, uri: str, content: bytes) -> None:
        self._require_answer()
        with self._lock:
            self.files[uri] = content
            self.touch(uri)

    def read_tagged(self, uri: str) -> tuple[str, bytes]:
        with self._lock:
            content = self.read(uri)
            # S3's tag of an object is a hash of its content.
            return hashlib.md5(content, usedforsecurity=False).hexdigest(), content

    def replace(self, uri: str, content: bytes, tag: str) -> None:
        with self._lock:
            if self.read_tagged(uri)[0] != tag and self.honours_conditions:
                raise FileExistsError(uri)
            self.write(uri, content)

    def make_folder(self, uri: str, mode: int | None = None) -> None:  # noqa: ARG002 - as the protocol has it
        raise AssertionError(f"{uri}: an object store has no folders")

    def rename(self, uri: str, target: str, *, replaces: bool = False) -> None:  # noqa: ARG002 - as above
        raise AssertionError(f"{uri}: an object store renames nothing")
