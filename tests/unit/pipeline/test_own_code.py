"""Which files are code of the project, and which belong to a package or to the standard library."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.pipeline import own_code


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("job.py", "job.py"),
        ("lib/more.py", "lib/more.py"),
        ("linked.py", "linked.py"),
        (".venv/lib/python3.11/site-packages/x.py", None),
        ("usr/lib/python3/dist-packages/x.py", None),
        ("env/lib/python3.11/socket.py", None),
        ("../shared.py", None),
        ("<frozen runpy>", None),
    ],
)
@pytest.mark.parametrize("folder", ["project", "link"])
def test_code_of_a_project_is_in_its_folder_and_in_no_environment(
    file: str, path: str | None, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "shared.py").touch()
    (project / "linked.py").symlink_to(tmp_path / "shared.py")
    (tmp_path / "link").symlink_to(project)
    monkeypatch.chdir(project)
    monkeypatch.setattr(own_code, "STANDARD_LIBRARY", tmp_path / folder / "env/lib/python3.11")

    own_path = own_code.find_own_path(
        Path(file) if file[0] == "<" else tmp_path / folder / file, tmp_path / folder
    )

    assert own_path == (Path(path) if path else None)


def test_a_folder_may_be_a_link_of_the_one_that_the_file_names(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "project")

    assert own_code.find_own_path(tmp_path / "project/job.py", tmp_path / "link") == Path("job.py")
