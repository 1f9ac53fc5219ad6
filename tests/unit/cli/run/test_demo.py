"""A demo has servers and a folder of its own, with nothing of a former demo but the check that it passed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

from millstream.checking.passed_check import FILE
from millstream.cli.main import run_command
from millstream.cli.project import open_project
from millstream.cli.run.demo import _renew
from millstream.devstack import stack
from millstream.diagnostics.failure import NotReady

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_new_demo_keeps_nothing_of_the_last_one_but_its_check(tmp_path: Path) -> None:
    _renew(tmp_path / "demo")
    assert not (tmp_path / "demo" / FILE).exists()
    (tmp_path / "demo/lake").mkdir()
    (tmp_path / "demo" / FILE).parent.mkdir()
    (tmp_path / "demo" / FILE).write_text("passed")

    _renew(tmp_path / "demo")

    assert not (tmp_path / "demo/lake").exists()
    assert (tmp_path / "demo" / FILE).read_text() == "passed"
    assert (tmp_path / "demo/pipeline.yml").is_file()


def test_the_addresses_and_folders_of_another_project_have_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {
        "KAFKA": "other:1",
        "POSTGRES_URL": "postgresql://other/db",
        "STATE_DIR": "/other/state",
        "LAKE": "/other/lake",
    }
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MILLSTREAM_ARCHIVE", "use")
    monkeypatch.chdir(tmp_path)
    specs: list[str] = []
    left: list[str] = []

    def up(folder: Path, *_: Any, **__: Any) -> NoReturn:
        specs.append(str(open_project(folder).pipeline))
        left.extend(set(others) & set(os.environ))  # which the process of the traffic would get too
        raise NotReady("the servers are not started in this test", "none")

    monkeypatch.setattr(stack, "up", up)

    assert run_command(["demo"]) == 4

    assert left == []
    assert [value for value in others.values() if value in specs[0]] == []
