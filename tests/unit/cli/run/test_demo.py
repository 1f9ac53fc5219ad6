"""The folder of a demo: new each time, but for the check that a former demo has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.checking.passed_check import FILE
from millstream.cli.run.demo import _renew

if TYPE_CHECKING:
    from pathlib import Path


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
