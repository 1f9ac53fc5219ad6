"""Which file of a project a path of a container means."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.checking.scripts.local_files import find_copied_file


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
