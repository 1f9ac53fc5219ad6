"""An archive whose bytes depend on nothing but what is in it."""

from __future__ import annotations

import tarfile
import time
from typing import TYPE_CHECKING

import pytest

from millstream.deployment.archive import write_archive

if TYPE_CHECKING:
    from pathlib import Path

CONTENTS = {"project/pipeline.yml": b"name: shop\n", "main.py": b"", "jars/a.jar": bytes(range(256)) * 40}


def test_the_same_contents_give_the_same_bytes_at_another_time_under_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(tmp_path / "one.tar.gz", CONTENTS)
    later = time.time() + 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    write_archive(tmp_path / "other.tar.gz", dict(reversed(CONTENTS.items())))

    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "other.tar.gz").read_bytes()


def test_an_archive_gives_its_contents_back_with_modes_that_any_user_can_read(tmp_path: Path) -> None:
    write_archive(tmp_path / "dist" / "shop.tar.gz", CONTENTS)

    with tarfile.open(tmp_path / "dist" / "shop.tar.gz") as archive:
        members = archive.getmembers()
        contents = {member.name: archive.extractfile(member).read() for member in members}  # type: ignore[union-attr]
    assert contents == CONTENTS
    assert {(member.mode, member.uid, member.uname) for member in members} == {(0o644, 0, "")}


def test_an_archive_that_cannot_be_completed_leaves_the_former_one(tmp_path: Path) -> None:
    file = tmp_path / "shop.tar.gz"
    write_archive(file, CONTENTS)
    before = file.read_bytes()

    with pytest.raises(TypeError):
        write_archive(file, {**CONTENTS, "zzz": None})  # type: ignore[dict-item]

    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
