"""Paths of sources that cannot be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.analysis.rule_context import Facts
from millstream.analysis.rules import ms502_missing_file
from millstream.pipeline.spec_file import load_text

if TYPE_CHECKING:
    import os

SPEC = """name: shop
sources:
  prices: {parquet: PATH, static: true}
queries:
  copy: {from: prices, to: {console: {}}}
"""


@pytest.mark.parametrize("path", ["closed/prices", "closed/*/prices"])
def test_a_path_in_a_folder_closed_to_this_user_may_exist(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_text("pipeline.yml", SPEC.replace("PATH", path), tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings
    facts = Facts(loaded.pipeline, loaded.places)
    assert len(list(ms502_missing_file.check(facts))) == 1

    def refuse(path: Path) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    # Python 3.14 raises no error here.
    monkeypatch.setattr(Path, "exists", lambda _path: False)

    assert list(ms502_missing_file.check(facts)) == []


def test_a_loop_of_links_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "prices").symlink_to("prices")
    loaded = load_text("pipeline.yml", SPEC.replace("PATH", "prices"), tmp_path, {})
    assert loaded.pipeline is not None, loaded.findings

    assert len(list(ms502_missing_file.check(Facts(loaded.pipeline, loaded.places)))) == 1
