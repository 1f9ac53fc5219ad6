"""A manifest in a folder of Hadoop is created once: by a rename, or on S3, where a rename replaces, conditionally."""

from __future__ import annotations

from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.connectors.files.sink_folder import HadoopPlace

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = "/lake/orders"
CONDITION = "fs.option.create.conditional.overwrite"


class JavaPath:
    """Hadoop's `Path`."""

    def __init__(self, *parts: object) -> None:
        self.text = "/".join(map(str, parts))

    def __str__(self) -> str:
        return self.text

    toString = __str__  # noqa: N815 - Java's name

    def getName(self) -> str:  # noqa: N802 - Java's name
        return PurePosixPath(self.text).name

    def getParent(self) -> JavaPath:  # noqa: N802 - Java's name
        return JavaPath(PurePosixPath(self.text).parent)


class Files:
    """A file system of Hadoop in memory, with the guarantees of HDFS or of S3."""

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        self.files: dict[str, bytes] = {}
        self.on_close: Callable[[], object] = lambda: None
        """What another driver does while a file is being written."""

    def place(self) -> HadoopPlace:
        """A folder in it, as a driver sees it."""
        text = SimpleNamespace(toString=lambda stream, _: stream.decode())
        java = SimpleNamespace(
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    hadoop=SimpleNamespace(fs=SimpleNamespace(Path=JavaPath)),
                    commons=SimpleNamespace(io=SimpleNamespace(IOUtils=text)),
                )
            )
        )
        return HadoopPlace(java, self, JavaPath(ROOT))

    def makeQualified(self, path: JavaPath) -> JavaPath:  # noqa: N802 - Java's name
        return path

    def getUri(self) -> Any:  # noqa: N802 - Java's name
        return SimpleNamespace(getScheme=lambda: self.scheme)

    def exists(self, path: JavaPath) -> bool:
        return str(path) in self.files

    def open(self, path: JavaPath) -> Any:
        content = self.files[str(path)]
        return SimpleNamespace(decode=content.decode, close=lambda: None)

    def create(self, path: JavaPath) -> Stream:
        return Stream(self, path)

    def rename(self, path: JavaPath, to: JavaPath) -> bool:
        if self.scheme != "s3a" and self.exists(to):
            return False
        self.files[str(to)] = self.files.pop(str(path))
        return True

    def delete(self, path: JavaPath, _: bool) -> None:
        del self.files[str(path)]

    def createFile(self, path: JavaPath) -> Builder:  # noqa: N802 - Java's name
        return Builder(self, path)


class Stream:
    """A file that is being written; it is there when it is closed, unless its condition fails."""

    def __init__(self, system: Files, path: JavaPath, condition: str = "") -> None:
        self._system, self._path, self._condition, self._content = system, path, condition, b""

    def write(self, content: bytes) -> None:
        self._content += bytes(content)

    def close(self) -> None:
        happens, self._system.on_close = self._system.on_close, lambda: None
        happens()
        if self._condition == CONDITION and self._system.exists(self._path):
            raise OSError("org.apache.hadoop.fs.s3a.RemoteFileChangedException: 412 PreconditionFailed")
        self._system.files[str(self._path)] = self._content


class Builder:
    """What `createFile` gives."""

    def __init__(self, system: Files, path: JavaPath) -> None:
        self._system, self._path, self._condition = system, path, ""

    def overwrite(self, _: bool) -> Builder:
        return self

    def must(self, condition: str, _: bool) -> Builder:
        self._condition = condition
        return self

    def build(self) -> Stream:
        return Stream(self._system, self._path, self._condition)


@pytest.mark.parametrize("scheme", ["hdfs", "s3a"])
def test_a_file_is_created_once_and_no_draft_is_left(scheme: str) -> None:
    system = Files(scheme)
    place = system.place()

    assert [place.create("0.json", text) for text in ("first", "second")] == [True, False]
    assert system.files == {f"{ROOT}/0.json": b"first"}


@pytest.mark.parametrize("scheme", ["hdfs", "s3a"])
def test_what_another_driver_creates_meanwhile_is_not_replaced(scheme: str) -> None:
    system = Files(scheme)
    place = system.place()
    system.on_close = lambda: place.create("0.json", "of the other")

    assert not place.create("0.json", "late")

    assert system.files == {f"{ROOT}/0.json": b"of the other"}
