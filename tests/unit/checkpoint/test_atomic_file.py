"""A small file of a checkpoint survives a power cut whole, and is for its owner alone."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from millstream.checkpoint import adoption_log, gap_log, metadata
from millstream.checkpoint.folder import Checkpoint
from millstream.checkpoint.metadata import QueryMetadata

RECORD = QueryMetadata("q", "id", (), (), (), "append", {}, {}, {})


def adopt(folder: Path) -> None:
    adoption_log.add(folder, "sink", "writer", 3, "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda folder: Checkpoint(folder).renew_id(), "metadata"),
        (lambda folder: metadata.write(folder, RECORD), "_millstream/record.json"),
        (adopt, "_millstream/adopted.json"),
        (lambda folder: gap_log.add(folder, [{"source": "s"}]), "_millstream/gaps.json"),
    ],
    ids=["metadata", "record", "adopted", "gaps"],
)
def test_the_text_is_on_the_disk_before_its_name_and_the_name_before_it_is_relied_on(
    write: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        result.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def replaced(draft: Path, target: Path) -> Path:
        result.append("rename")
        return replace(draft, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)

    write(tmp_path)

    assert result == ["file", "rename", "folder"]
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert [file.name for file in (tmp_path / name).parent.iterdir() if "half" in file.name] == []


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_mount_that_cannot_flush_the_names_in_a_folder_can_have_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    sync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)

    query_id = Checkpoint(tmp_path).ensure_id()

    assert Checkpoint(tmp_path).query_id() == query_id


@pytest.mark.parametrize(
    ("number", "is_folder"), [(errno.EINVAL, False), (errno.EIO, True)], ids=["a file", "a broken disk"]
)
def test_other_errors_of_the_disk_are_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, *, is_folder: bool
) -> None:
    def refuse(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) is is_folder:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)

    with pytest.raises(OSError, match=os.strerror(number)):
        Checkpoint(tmp_path).ensure_id()
