"""A change of any file that a check reads is seen, and of no other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from millstream.checking.file_watch import read_stamps, unload_modules

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("pipeline.yml", "views/a.sql", "transforms.py", ".env", "data/rows.json", ".venv/lib.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("1")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["pipeline.yml", "views/a.sql", "transforms.py", "job.ipynb", "schemas/orders.avsc", ".env"]
)
def test_a_file_that_a_check_reads_is_seen_to_change(project: Path, name: str) -> None:
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("1")
    before = read_stamps([project])

    (project / name).write_text("12")

    assert read_stamps([project]) != before


def test_a_new_view_and_one_that_went_are_changes(project: Path) -> None:
    before = read_stamps([project])

    (project / "views/b.sql").write_text("1")
    more = read_stamps([project])
    (project / "views/b.sql").unlink()

    assert more != before
    assert read_stamps([project]) == before


@pytest.mark.parametrize("name", ["data/rows.json", ".venv/lib.py"])
def test_data_and_what_is_installed_are_not_looked_at(project: Path, name: str) -> None:
    before = read_stamps([project])

    (project / name).write_text("12")

    assert read_stamps([project]) == before


def test_a_file_that_lies_elsewhere_is_looked_at_when_it_is_named(project: Path) -> None:
    other = project / "data/rows.json"

    assert other in read_stamps([project], [other])


def test_modules_of_the_project_are_forgotten_and_others_stay(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(project))
    (project / "rules_of_shop.py").write_text("limit = 5\n")
    __import__("rules_of_shop")

    unload_modules([project])

    assert "rules_of_shop" not in sys.modules
    assert "millstream" in sys.modules
