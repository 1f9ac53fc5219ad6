"""Which file of a project a path of a container means."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checking.scripts.local_files import find_copied_file, tell_why_unread


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two files of one name and one of another."""
    for name in ("data/schemas/user.json", "old/user.json", "conf/job.yml", "venv/data.csv"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/opt/data/schemas/user.json", "data/schemas/user.json"),
        ("/app/old/user.json", "old/user.json"),
        ("/app/job.yml", "conf/job.yml"),
        ("/app/user.json", None),
        ("/app/data.csv", None),
        ("/app/missing.json", None),
        ("job.yml", None),
        ("/app/conf", None),
    ],
)
def test_a_path_of_a_container_is_the_file_with_the_longest_end_in_common(
    project: Path, path: str, file: str | None
) -> None:
    copied = find_copied_file(Path(path), project)

    assert copied == (None if file is None else project / file)


def test_without_a_project_no_file_is_found(project: Path) -> None:
    assert find_copied_file(project / "conf" / "absent" / "job.yml", None) is None


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("landing/ships", "it does not exist on this machine"),
        ("landing\\ships", "it does not exist on this machine"),
        ("file:///landing/ships", "it does not exist on this machine"),
        ("data", "no file there tells of them"),
        ("landing/*/ships", "a check does not connect to it"),
        ("s3a://landing/ships", "a check does not connect to it"),
        ("dbfs:/landing/ships", "a check does not connect to it"),
    ],
)
def test_files_without_columns_have_a_reason(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str, why: str
) -> None:
    monkeypatch.chdir(project)

    assert tell_why_unread(place) == why
