"""A remote file system in memory, with what HDFS guarantees: one creator of a file, renames that happen at once."""

from __future__ import annotations

import threading
from collections import defaultdict

from millstream.checkpoint.remote.file_system import FileStatus


class MemoryFileSystem:
    """Files and folders by URI."""

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
