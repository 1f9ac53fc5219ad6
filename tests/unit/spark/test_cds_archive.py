"""When a class-data archive is used, kept and thrown away."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from millstream.spark import cds_archive

if TYPE_CHECKING:
    from pathlib import Path


def adopted(folder: Path, name: str) -> Path:
    """An archive that was made and put into its place."""
    draft = folder / f"{name}.draft"
    draft.write_bytes(b"classes")
    cds_archive.install_archive(draft, folder / f"{name}.jsa")
    return folder / f"{name}.jsa"


def test_an_adopted_archive_is_used_and_its_sums_are_checked(tmp_path: Path) -> None:
    flags = cds_archive.jvm_flags(adopted(tmp_path, "a"))

    assert f"-XX:SharedArchiveFile={tmp_path / 'a.jsa'}" in flags
    assert "-XX:+VerifySharedSpaces" in flags


def test_an_archive_cut_short_is_not_used(tmp_path: Path) -> None:
    path = adopted(tmp_path, "a")
    path.write_bytes(b"cla")

    assert cds_archive.jvm_flags(path) == ()


def test_an_archive_that_nobody_finished_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "a.jsa").write_bytes(b"classes")

    assert cds_archive.jvm_flags(tmp_path / "a.jsa") == ()


def test_the_archives_used_last_are_kept(tmp_path: Path) -> None:
    first, second = adopted(tmp_path, "a"), adopted(tmp_path, "b")
    os.utime(first, (2, 2))
    os.utime(second, (1, 1))

    adopted(tmp_path, "c")

    assert sorted(path.name for path in tmp_path.glob("*.jsa")) == ["a.jsa", "c.jsa"]
